/* A stand-in for libnvidia-ml.so.1, so that the real ctypes path of pynvml runs in tests.

   Behaviour comes from environment variables:
     FAKE_NVML_GPUS=N         number of GPUs (default 1)
     FAKE_NVML_MIG=I:N,...    GPU I is in MIG mode with N instances
     FAKE_NVML_HANG=1         every call hangs, deaf to SIGTERM
     FAKE_NVML_INIT=CODE      nvmlInit returns this code
     FAKE_NVML_LOST=I         GPU I has fallen off the bus (it still tells its UUID)
     FAKE_NVML_NO_HANDLE=I    GPU I cannot even be opened
     FAKE_NVML_RETIRED=I      GPU I has pages that wait to be retired
     FAKE_NVML_REMAP=I:WHAT   WHAT is "pending" or "failed"
     FAKE_NVML_ECC=I:N        GPU I has N uncorrected errors
     FAKE_NVML_USE=I:N        GPU I was used N percent of the time just now
     FAKE_NVML_SAMPLES=I:N    … and up to N percent some seconds ago
     FAKE_NVML_CLOCK=I:MHZ, …_THROTTLE=I:BITS, …_CELSIUS=I:N, …_MILLIWATTS=I:N, …_POWER_LIMIT=I:N,
     …_LANES=I:N, …_REPLAYS=I:N, …_CORRECTED=I:N
                              readings of GPU I; it does not offer those that are not given
     FAKE_NVML_PIDS=I:PID,... processes on unit I (of a MIG instance: 100 * (GPU + 1) + slot)
*/
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15
};
enum { MAXIMUM = 16, SLOTS = 7 };

typedef struct { int gpu; int slot; /* -1: the GPU itself */ } unit;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
} process;

typedef struct { unsigned long long at, value; } sample;
typedef struct {
    char legacy[16];
    unsigned int domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_info;

static unit units[MAXIMUM][SLOTS + 1];

static void maybe_hang(void) {
    if (getenv("FAKE_NVML_HANG") == NULL) return;
    signal(SIGTERM, SIG_IGN);
    for (;;) pause();
}

/* The value that the list "I:VALUE,I:VALUE" in NAME has for `index`, else NULL. */
static const char *value_for(const char *name, int index) {
    const char *at = getenv(name);
    while (at != NULL && *at != '\0') {
        char *colon;
        if (strtol(at, &colon, 10) == index) return *colon == ':' ? colon + 1 : "1";
        at = strchr(at, ',');
        if (at != NULL) at++;
    }
    return NULL;
}

/* The error code that FAKE_NVML_MISSING ("I:READING=CODE") has for a reading of a device, or 0. */
static int failure(unit *device, const char *reading) {
    const char *text = value_for("FAKE_NVML_MISSING", device->gpu);
    size_t length = strlen(reading);
    if (text == NULL || strncmp(text, reading, length) != 0 || text[length] != '=') return 0;
    return atoi(text + length + 1);
}

static int gpu_count(void) {
    const char *text = getenv("FAKE_NVML_GPUS");
    return text == NULL ? 1 : atoi(text);
}

static int mig_count(int gpu) {
    const char *text = value_for("FAKE_NVML_MIG", gpu);
    return text == NULL ? -1 : atoi(text);
}

int nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    maybe_hang();
    const char *code = getenv("FAKE_NVML_INIT");
    return code == NULL ? SUCCESS : atoi(code);
}

const char *nvmlErrorString(int code) {
    return code == GPU_IS_LOST ? "GPU is lost" : "fake error";
}

int nvmlDeviceGetCount_v2(unsigned int *count) {
    *count = (unsigned int)gpu_count();
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, unit **out) {
    if ((int)index >= gpu_count()) return INVALID_ARGUMENT;
    if (value_for("FAKE_NVML_NO_HANDLE", (int)index) != NULL) return GPU_IS_LOST;
    *out = &units[index][0];
    (*out)->gpu = (int)index;
    (*out)->slot = -1;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(unit *device, unsigned int *current, unsigned int *pending) {
    if (getenv("FAKE_NVML_MIG") == NULL) return NOT_SUPPORTED;
    *current = *pending = mig_count(device->gpu) >= 0;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(unit *device, unsigned int *count) {
    (void)device;
    *count = SLOTS;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(unit *device, unsigned int slot, unit **out) {
    if ((int)slot >= mig_count(device->gpu)) return NOT_FOUND;
    *out = &units[device->gpu][slot + 1];
    (*out)->gpu = device->gpu;
    (*out)->slot = (int)slot;
    return SUCCESS;
}

int nvmlDeviceGetUUID(unit *device, char *text, unsigned int length) {
    if (failure(device, "uuid")) return failure(device, "uuid");
    if (device->slot < 0)
        snprintf(text, length, "GPU-00000000-0000-0000-0000-%012d", device->gpu);
    else
        snprintf(text, length, "MIG-00000000-0000-0000-%04d-%012d", device->slot, device->gpu);
    return SUCCESS;
}

int nvmlDeviceGetName(unit *device, char *text, unsigned int length) {
    if (value_for("FAKE_NVML_LOST", device->gpu) != NULL) return GPU_IS_LOST;
    if (failure(device, "name")) return failure(device, "name");
    snprintf(text, length, device->slot < 0 ? "NVIDIA Fake" : "NVIDIA Fake MIG 1g.10gb");
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(unit *device, memory *out) {
    if (failure(device, "memory")) return failure(device, "memory");
    out->total = device->slot < 0 ? 80ULL << 30 : 10ULL << 30;
    out->free = out->total;
    out->used = 0;
    return SUCCESS;
}

int nvmlDeviceGetRetiredPagesPendingStatus(unit *device, unsigned int *pending) {
    if (value_for("FAKE_NVML_LOST", device->gpu) != NULL) return GPU_IS_LOST;
    if (getenv("FAKE_NVML_RETIRED") == NULL) return NOT_SUPPORTED;
    *pending = value_for("FAKE_NVML_RETIRED", device->gpu) != NULL;
    return SUCCESS;
}

int nvmlDeviceGetRemappedRows(unit *device, unsigned int *corrected, unsigned int *uncorrected,
                              unsigned int *pending, unsigned int *failed) {
    const char *what = value_for("FAKE_NVML_REMAP", device->gpu);
    *corrected = *uncorrected = 0;
    *pending = what != NULL && strncmp(what, "pending", 7) == 0;
    *failed = what != NULL && strncmp(what, "failed", 6) == 0;
    return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(unit *device, int type, int counter, unsigned long long *count) {
    (void)counter;
    const char *text = value_for(type == 0 ? "FAKE_NVML_CORRECTED" : "FAKE_NVML_ECC", device->gpu);
    if (type == 0 && text == NULL) return NOT_SUPPORTED;
    *count = text == NULL ? 0 : strtoull(text, NULL, 10);
    return SUCCESS;
}

static int number(unit *device, const char *name, unsigned int *out) {
    const char *text = value_for(name, device->gpu);
    if (value_for("FAKE_NVML_LOST", device->gpu) != NULL) return GPU_IS_LOST;
    if (text == NULL) return NOT_SUPPORTED;
    *out = (unsigned int)strtoul(text, NULL, 10);
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(unit *device, int type, unsigned int *out) {
    (void)type;
    return number(device, "FAKE_NVML_CLOCK", out);
}

int nvmlDeviceGetTemperature(unit *device, int sensor, unsigned int *out) {
    (void)sensor;
    return number(device, "FAKE_NVML_CELSIUS", out);
}

int nvmlDeviceGetPowerUsage(unit *device, unsigned int *out) {
    return number(device, "FAKE_NVML_MILLIWATTS", out);
}

int nvmlDeviceGetEnforcedPowerLimit(unit *device, unsigned int *out) {
    return number(device, "FAKE_NVML_POWER_LIMIT", out);
}

int nvmlDeviceGetCurrPcieLinkWidth(unit *device, unsigned int *out) {
    return number(device, "FAKE_NVML_LANES", out);
}

int nvmlDeviceGetPcieReplayCounter(unit *device, unsigned int *out) {
    return number(device, "FAKE_NVML_REPLAYS", out);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(unit *device, unsigned long long *out) {
    unsigned int bits = 0;
    int code = number(device, "FAKE_NVML_THROTTLE", &bits);
    *out = bits;
    return code;
}

int nvmlDeviceGetPciInfo_v3(unit *device, pci_info *out) {
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", device->gpu + 1);
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(unit *device, unsigned int *rates /* gpu, memory */) {
    const char *text = value_for("FAKE_NVML_USE", device->gpu);
    if (text == NULL) return NOT_SUPPORTED;
    rates[0] = (unsigned int)atoi(text);
    rates[1] = 0;
    return SUCCESS;
}

int nvmlDeviceGetSamples(unit *device, int type, unsigned long long since, int *value_type,
                         unsigned int *count, sample *out) {
    const char *text = value_for("FAKE_NVML_SAMPLES", device->gpu);
    (void)type;
    (void)since;
    if (text == NULL) return NOT_SUPPORTED;
    *value_type = 1;
    *count = 2;
    if (out == NULL) return SUCCESS;
    memset(out, 0, 2 * sizeof *out);
    out[1].value = (unsigned long long)atoi(text);
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(unit *device, unsigned int *count, process *out) {
    int index = device->slot < 0 ? device->gpu : 100 * (device->gpu + 1) + device->slot;
    if (failure(device, "pids")) return failure(device, "pids");
    const char *text = value_for("FAKE_NVML_PIDS", index);
    if (text == NULL) {
        *count = 0;
        return SUCCESS;
    }
    if (out == NULL || *count < 1) {
        *count = 1;
        return INSUFFICIENT_SIZE;
    }
    *count = 1;
    memset(out, 0, sizeof *out);
    out->pid = (unsigned int)strtoul(text, NULL, 10);
    return SUCCESS;
}
