/* A stand-in for libamd_smi.so.26, so that the real ctypes path of amd_smi runs in tests.

   Layouts are those of amdsmi.h of ROCm 7.0, written again as offsets where a structure is long.

   Behaviour comes from environment variables:
     FAKE_AMD_GPUS=N          number of GPUs (default 1), each in a socket of its own
     FAKE_AMD_PARTITIONS=I:N  GPU I is partitioned into N devices
     FAKE_AMD_HANG=1          every call hangs, deaf to SIGTERM
     FAKE_AMD_CRASH=1         the library aborts
     FAKE_AMD_INIT=CODE       amdsmi_init returns this code
     FAKE_AMD_MISSING=I:READING=CODE  a reading of GPU I returns this code
     FAKE_AMD_NO_SERIAL=I     GPU I has no serial number
     FAKE_AMD_PAGES=I:STATUS  GPU I has a bad page with this status
     FAKE_AMD_ECC=I:N         GPU I has N uncorrected errors
     FAKE_AMD_USE=I:N         GPU I is used N percent of the time (default: not measured)
     FAKE_AMD_PIDS=I:PID,...  a process on unit I (of a partition: 100 * (GPU + 1) + number)
*/
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVAL = 1, NOT_SUPPORTED = 2, DRIVER_NOT_LOADED = 34 };
enum { MAXIMUM = 16, PARTITIONS = 8, AMD_GPUS = 2 };

typedef struct { int gpu; int partition; /* -1: the GPU itself */ } unit;

static unit units[MAXIMUM][PARTITIONS + 1];

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

static int failure(unit *device, const char *reading) {
    const char *text = value_for("FAKE_AMD_MISSING", device->gpu);
    size_t length = strlen(reading);
    if (text == NULL || strncmp(text, reading, length) != 0 || text[length] != '=') return 0;
    return atoi(text + length + 1);
}

static int gpu_count(void) {
    const char *text = getenv("FAKE_AMD_GPUS");
    return text == NULL ? 1 : atoi(text);
}

int amdsmi_init(uint64_t flags) {
    if (getenv("FAKE_AMD_CRASH") != NULL) abort();
    if (getenv("FAKE_AMD_HANG") != NULL) {
        signal(SIGTERM, SIG_IGN);
        for (;;) pause();
    }
    const char *code = getenv("FAKE_AMD_INIT");
    if (flags != AMD_GPUS) return INVAL;
    return code == NULL ? SUCCESS : atoi(code);
}

int amdsmi_status_code_to_string(int status, const char **text) {
    *text = status == NOT_SUPPORTED ? "AMDSMI_STATUS_NOT_SUPPORTED: not supported" : "fake error";
    return SUCCESS;
}

int amdsmi_get_socket_handles(uint32_t *count, void **out) {
    uint32_t number = (uint32_t)gpu_count();
    for (uint32_t i = 0; out != NULL && i < number; i++) {
        units[i][0].gpu = (int)i;
        out[i] = &units[i][0];
    }
    *count = number;
    return SUCCESS;
}

int amdsmi_get_processor_handles(void *socket, uint32_t *count, void **out) {
    int gpu = ((unit *)socket)->gpu;
    const char *text = value_for("FAKE_AMD_PARTITIONS", gpu);
    uint32_t number = text == NULL ? 1 : (uint32_t)atoi(text);
    for (uint32_t i = 0; out != NULL && i < number; i++) {
        units[gpu][i + 1].gpu = gpu;
        units[gpu][i + 1].partition = text == NULL ? -1 : (int)i;
        out[i] = &units[gpu][i + 1];
    }
    *count = number;
    return SUCCESS;
}

int amdsmi_get_gpu_enumeration_info(unit *device, unsigned char *out) {
    uint32_t render = 128 + (uint32_t)device->gpu;
    unsigned long long serial = 0xab00 + 16ULL * device->gpu + (device->partition + 1);
    if (failure(device, "uuid")) return failure(device, "uuid");
    if (value_for("FAKE_AMD_NO_SERIAL", device->gpu) != NULL) serial = 0;
    memset(out, 0, 16 + 256);
    memcpy(out, &render, sizeof render);
    snprintf((char *)out + 16, 256, "GPU-%016llx", serial);
    return SUCCESS;
}

int amdsmi_get_gpu_asic_info(unit *device, unsigned char *out) {
    if (failure(device, "name")) return failure(device, "name");
    memset(out, 0xee, 256 + 640); /* what follows the name is not read */
    snprintf((char *)out, 256, "AMD Instinct Fake");
    return SUCCESS;
}

int amdsmi_get_gpu_memory_total(unit *device, int type, uint64_t *total) {
    if (failure(device, "memory")) return failure(device, "memory");
    *total = type == 0 ? (device->partition < 0 ? 192ULL << 30 : 24ULL << 30) : 1;
    return SUCCESS;
}

int amdsmi_get_gpu_memory_usage(unit *device, int type, uint64_t *used) {
    if (failure(device, "memory")) return failure(device, "memory");
    *used = type == 0 ? 1ULL << 30 : 1;
    return SUCCESS;
}

int amdsmi_get_gpu_activity(unit *device, uint32_t *out) {
    const char *text = value_for("FAKE_AMD_USE", device->gpu);
    memset(out, 0, 64);
    out[0] = text == NULL ? 0xffff : (uint32_t)atoi(text);
    return SUCCESS;
}

/* 704 bytes each, the pid after a name of 256. */
int amdsmi_get_gpu_process_list(unit *device, uint32_t *count, unsigned char *out) {
    int index = device->partition < 0 ? device->gpu : 100 * (device->gpu + 1) + device->partition;
    const char *text = value_for("FAKE_AMD_PIDS", index);
    if (failure(device, "pids")) return failure(device, "pids");
    if (text == NULL || *count == 0) {
        *count = text != NULL;
        return SUCCESS;
    }
    uint32_t pid = (uint32_t)strtoul(text, NULL, 10);
    *count = 2; /* the same process twice: pids are counted once */
    memset(out, 0, 2 * 704);
    memcpy(out + 256, &pid, sizeof pid);
    memcpy(out + 704 + 256, &pid, sizeof pid);
    return SUCCESS;
}

int amdsmi_get_gpu_bad_page_info(unit *device, uint32_t *count, unsigned char *out) {
    const char *text = value_for("FAKE_AMD_PAGES", device->gpu);
    if (failure(device, "pages")) return failure(device, "pages");
    *count = text != NULL;
    if (text == NULL || out == NULL) return SUCCESS;
    uint32_t status = (uint32_t)atoi(text);
    memset(out, 0, 24);
    memcpy(out + 16, &status, sizeof status);
    return SUCCESS;
}

int amdsmi_get_gpu_total_ecc_count(unit *device, uint64_t *out) {
    const char *text = value_for("FAKE_AMD_ECC", device->gpu);
    if (failure(device, "ecc")) return failure(device, "ecc");
    memset(out, 0, 64);
    out[1] = text == NULL ? 0 : strtoull(text, NULL, 10);
    return SUCCESS;
}
