"""What well-known functions do besides computing: the tables of the analysis of cells.

A dotted name has the rule of its longest prefix in ``RULES``; other names of ``PURE_MODULES`` only
compute, or read files; names of other modules are unknown. Methods of objects are known by their
name alone, since the type of an object is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class EffectKind(StrEnum):
    """What a name does when its code runs."""

    PURE = "only computes"
    SEED = "seeds a generator of random numbers"
    RANDOM = "draws random numbers"
    OWN_SEED = "creates a generator of random numbers"
    OPENS = "opens a file"
    WRITES = "writes files"
    TIME = "reads the clock"
    PROCESS = "starts a process or a thread"
    NETWORK = "uses the network"
    INPUT = "asks for input"
    NAMESPACE = "reads all variables"
    DYNAMIC = "executes code that is not in the notebook's text"
    UNPICKLES = "creates objects of classes that a file names"
    SERVICE = "depends on the job that runs it"
    UNKNOWN = "is not known to the analysis"


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a name.

    Attributes:
        origin: the library whose generator it seeds (several, separated by spaces), or draws from;
            empty for one that cannot be seeded.
    """

    kind: EffectKind
    origin: str = ""


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_PYTHON, _NUMPY, _TORCH, _TENSORFLOW = "random", "numpy.random", "torch", "tensorflow"
_KERAS = "keras"
_OWN = "own"
"""Of functions that draw from a generator of their own, unless they are given a seed."""

PURE = Effect(EffectKind.PURE)
UNKNOWN = Effect(EffectKind.UNKNOWN)
WRITES = Effect(EffectKind.WRITES)
OPENS = Effect(EffectKind.OPENS)
RANDOM_NUMPY = Effect(EffectKind.RANDOM, _NUMPY)
UNSEEDABLE = Effect(EffectKind.RANDOM)
NAMESPACE = Effect(EffectKind.NAMESPACE)
DYNAMIC = Effect(EffectKind.DYNAMIC)
NETWORK = Effect(EffectKind.NETWORK)
UNPICKLES = Effect(EffectKind.UNPICKLES)
TIME = Effect(EffectKind.TIME)
_PROCESS = Effect(EffectKind.PROCESS)
_INPUT = Effect(EffectKind.INPUT)
_OWN_SEED = Effect(EffectKind.OWN_SEED)

SEED_CALLS: Final[Mapping[str, str]] = {
    _PYTHON: "random.seed(0)",
    _NUMPY: "numpy.random.seed(0)",
    _TORCH: "torch.manual_seed(0)",
    _TENSORFLOW: "tensorflow.random.set_seed(0)",
    _KERAS: "keras.utils.set_random_seed(0)",
}
"""What seeds each library, for advice."""

PURE_MODULES: Final = names(
    """
    __future__ abc argparse array ast base64 binascii bisect bz2 calendar cmath codecs collections
    colorsys contextlib copy csv dataclasses datetime decimal difflib enum errno fractions
    functools gc glob gzip hashlib heapq html io itertools json keyword locale logging lzma math
    numbers operator os packaging pathlib pickle platform pprint random re reprlib shlex statistics
    string struct sys tarfile textwrap time tokenize traceback types typing typing_extensions
    unicodedata warnings weakref zipfile zlib zoneinfo
    IPython PIL cv2 dateutil einops jax joblib keras lightgbm matplotlib networkx numba numpy pandas
    patsy polars pyarrow scipy seaborn skimage sklearn statsmodels sympy tabulate tensorflow
    torch torchvision tqdm xgboost
    """
)
"""Modules whose names only compute or read, unless there is a rule below."""

SUBMODULES: Final = names(
    """
    IPython.display matplotlib.pyplot numpy.linalg numpy.random os.path scipy.stats sklearn.cluster
    sklearn.datasets sklearn.decomposition sklearn.ensemble sklearn.linear_model sklearn.metrics
    sklearn.model_selection sklearn.neighbors sklearn.pipeline sklearn.preprocessing sklearn.svm
    sklearn.tree sklearn.utils torch.nn torch.nn.functional torch.nn.init torch.optim torch.utils
    torch.utils.data torchvision.datasets torchvision.models torchvision.transforms
    tensorflow.keras keras.layers keras.models jax.numpy scipy.optimize scipy.signal
    """
)
"""Modules that are often imported with ``from``; passed on as a value, they hide what is used."""


_FIXED_OF_KERAS = names(
    """
    Sequential Model Input activations backend callbacks constraints losses metrics optimizers
    regularizers utils layers.Activation layers.AveragePooling2D layers.BatchNormalization
    layers.Concatenate layers.Flatten layers.GlobalAveragePooling2D layers.Input layers.InputLayer
    layers.LayerNormalization layers.Layer layers.MaxPooling1D layers.MaxPooling2D
    layers.Normalization layers.ReLU layers.Rescaling layers.Reshape layers.Softmax
    models.Sequential models.Model
    """
)
"""Of Keras's names, those that draw no numbers."""


def _rules() -> dict[str, Effect]:
    found: dict[str, Effect] = {}
    for effect, text in (
        (PURE, """
            numpy.random.Generator numpy.random.BitGenerator torch.nn.functional.one_hot
            torch.nn.functional.softmax torch.nn.functional.relu torch.nn.functional.cross_entropy
            torch.nn.functional.mse_loss torch.nn.functional.log_softmax torch.nn.functional.pad
            torch.nn.Module torch.nn.functional.normalize torch.nn.functional.interpolate
            torch.utils.data.Dataset torch.utils.data.IterableDataset time.sleep
            torch.utils.data.TensorDataset torch.utils.data.Subset time.strptime time.struct_time
            os.path os.environ os.getcwd os.listdir os.scandir os.walk os.sep os.linesep os.fspath
            os.cpu_count os.getenv os.name os.chdir os.pathsep os.PathLike os.putenv os.stat
            sys.stdout.write sys.stdout.flush sys.stderr.write sys.stderr.flush io.StringIO
            io.BytesIO io.TextIOWrapper logging.Logger random.Random.random pickle.dumps
            """),
        (Effect(EffectKind.SEED, _PYTHON), "random.seed"),
        (Effect(EffectKind.SEED, _NUMPY), "numpy.random.seed"),
        (Effect(EffectKind.SEED, _TORCH), "torch.manual_seed torch.random.manual_seed"),
        (Effect(EffectKind.SEED, "torch.cuda"),
         "torch.cuda.manual_seed torch.cuda.manual_seed_all"),
        (Effect(EffectKind.SEED, _TENSORFLOW), "tensorflow.random.set_seed"),
        (Effect(EffectKind.SEED, " ".join((_PYTHON, _NUMPY, _TENSORFLOW, _KERAS))),
         "keras.utils.set_random_seed tensorflow.keras.utils.set_random_seed"),
        (Effect(EffectKind.RANDOM, _PYTHON), "random"),
        (RANDOM_NUMPY, """
            numpy.random seaborn.stripplot scipy.sparse.random statsmodels.imputation
            scipy.optimize.dual_annealing scipy.optimize.basinhopping
            scipy.optimize.differential_evolution
            """),
        (Effect(EffectKind.RANDOM, _OWN), """
            scipy.stats.bootstrap scipy.stats.permutation_test scipy.stats.monte_carlo_test
            scipy.stats.qmc scipy.cluster.vq skimage.util.random_noise skimage.measure.ransac
            seaborn.regplot seaborn.lmplot seaborn.barplot seaborn.lineplot seaborn.pointplot
            seaborn.catplot seaborn.relplot polars.DataFrame.sample
            """),
        (Effect(EffectKind.RANDOM, _TORCH), """
            torch.nn torch.rand torch.randn torch.randint torch.randperm torch.normal
            torch.rand_like
            torch.randn_like torch.randint_like torch.bernoulli torch.multinomial torch.poisson
            torch.empty torch.utils.data.random_split torch.utils.data.RandomSampler
            torch.utils.data.WeightedRandomSampler torch.distributions torchvision.models
            torch.dropout torch.random torch.initial_seed torch.seed
            """),
        (Effect(EffectKind.RANDOM, _TENSORFLOW), "tensorflow.random"),
        (Effect(EffectKind.RANDOM, _KERAS), "tensorflow.keras keras"),
        (UNSEEDABLE, """
            uuid secrets os.urandom random.SystemRandom os.getrandom numpy.random.bytes
            cv2.kmeans cv2.randu cv2.randn cv2.randShuffle cv2.theRNG
            """),
        (_OWN_SEED, """
            random.Random numpy.random.default_rng numpy.random.RandomState
            numpy.random.SeedSequence
            numpy.random.PCG64 numpy.random.MT19937 numpy.random.Philox numpy.random.SFC64
            """),
        (OPENS, """
            io.open gzip.open bz2.open lzma.open zipfile.ZipFile PIL.Image.open pandas.ExcelFile
            tarfile.open gzip.GzipFile bz2.BZ2File codecs.open io.FileIO os.open
            """),
        (WRITES, """
            os.makedirs os.mkdir os.remove os.rename os.replace os.rmdir os.unlink os.symlink
            os.link os.removedirs os.renames os.truncate os.write
            shutil tempfile logging.FileHandler numpy.memmap pandas.HDFStore pandas.ExcelWriter
            cv2.imwrite cv2.VideoWriter PIL.Image.Image.save torch.utils.tensorboard sqlite3 shelve
            logging.handlers joblib.Memory tensorflow.summary tensorflow.train.Checkpoint
            keras.callbacks.ModelCheckpoint keras.callbacks.CSVLogger keras.callbacks.TensorBoard
            keras.callbacks.BackupAndRestore tensorflow.keras.callbacks.ModelCheckpoint
            tensorflow.keras.callbacks.CSVLogger tensorflow.keras.callbacks.TensorBoard
            tensorflow.keras.callbacks.BackupAndRestore
            torchvision.utils.save_image matplotlib.pyplot.imsave
            """),
        (TIME, """
            time datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow timeit
            datetime.date.today pandas.Timestamp.now pandas.Timestamp.today pandas.Timestamp.utcnow
            torch.cuda.Event cProfile profile resource
            """),
        (_PROCESS, """
            subprocess joblib.Parallel multiprocessing threading concurrent asyncio signal atexit
            pty sched torch.multiprocessing torch.distributed sys.exit os._exit sys.settrace
            sys.setprofile faulthandler ctypes
            """),
        (NETWORK, """
            socket ssl http urllib ftplib smtplib imaplib telnetlib xmlrpc requests httpx aiohttp
            websockets boto3 paramiko wandb mlflow huggingface_hub openai torch.hub
            seaborn.load_dataset keras.datasets tensorflow.keras.datasets keras.applications
            tensorflow.keras.applications keras.utils.get_file tensorflow.keras.utils.get_file
            statsmodels.datasets.get_rdataset
            """),
        (_INPUT, "getpass pdb code IPython.embed"),
        (NAMESPACE, """
            __main__ inspect doctest unittest dill sys._getframe sys.modules sys._current_frames
            IPython.get_ipython gc.get_objects gc.get_referrers
            """),
        (DYNAMIC, "importlib runpy IPython.core imp IPython.start_ipython"),
        (UNPICKLES, """
            pickle.load pickle.loads pickle.Unpickler joblib.load torch.load pandas.read_pickle
            torch.jit.load
            """),
        (Effect(EffectKind.SERVICE), "carrel"),
        (UNKNOWN, "os sys.stdin sys.path_hooks sys.meta_path"),
        (PURE, "importlib.metadata urllib.parse sys http.HTTPStatus multiprocessing.cpu_count"),
    ):  # fmt: skip
        found |= dict.fromkeys(text.split(), effect)
    fixed = {
        f"{keras}.{name}" for keras in ("keras", "tensorflow.keras") for name in _FIXED_OF_KERAS
    }
    return dict.fromkeys(fixed, PURE) | found


RULES: Final = _rules()

_BUILTINS: Final[Mapping[str, Effect]] = {
    "open": OPENS,
    "input": _INPUT,
    "breakpoint": _INPUT,
    "exec": DYNAMIC,
    "eval": DYNAMIC,
    "compile": DYNAMIC,
    "__import__": DYNAMIC,
    "globals": NAMESPACE,
    "locals": NAMESPACE,
    "exit": _PROCESS,
    "quit": _PROCESS,
    # Names of the interactive namespace.
    "get_ipython": NAMESPACE,
    "In": NAMESPACE,
    "Out": NAMESPACE,
    "__builtins__": NAMESPACE,
}

METHODS: Final[Mapping[str, Effect]] = {
    **dict.fromkeys(
        names("""
        to_csv to_parquet to_pickle to_json to_excel to_hdf to_feather to_sql to_html to_latex
        to_stata to_orc to_clipboard to_markdown to_xml to_gbq to_zarr to_netcdf tofile export dump
        save savez savefig savetxt savemat write writelines write_text write_bytes
        mkdir makedirs touch unlink rmdir symlink_to hardlink_to chmod extractall add_scalar
        add_image add_graph sink_csv sink_parquet imsave imwrite mknod removedirs log_metric
        """),
        WRITES,
    ),
    **dict.fromkeys(("sample", "rvs", "resample"), RANDOM_NUMPY),
    **dict.fromkeys(
        names(
            "normal_ uniform_ random_ bernoulli_ exponential_ cauchy_ log_normal_ geometric_"
            " multinomial bernoulli"
        ),
        Effect(EffectKind.RANDOM, _TORCH),
    ),
    "effect_noise": UNSEEDABLE,
    **dict.fromkeys(("now", "today", "utcnow"), TIME),
    **dict.fromkeys(("Popen", "check_output", "check_call"), _PROCESS),
    **dict.fromkeys(("urlopen", "urlretrieve", "from_pretrained"), NETWORK),
    **dict.fromkeys(
        names(
            "_getframe currentframe f_globals f_locals f_back gi_frame tb_frame __globals__ user_ns"
            " user_global_ns __subclasses__"
        ),
        NAMESPACE,
    ),
    **dict.fromkeys(("run_cell", "run_line_magic", "run_cell_magic", "run_code"), DYNAMIC),
}
"""Effects of methods and attributes by name, of objects of any type."""
_WRITERS = ("write", "save")
"""How the names of methods begin that write."""
OTHER_GENERATORS: Final[Mapping[str, str]] = {
    "polars": "sample shuffle",
    "tensorflow": "shuffle",
    "datasets": "shuffle train_test_split",
}
"""Methods that draw numbers for objects of a library, if a notebook imports it."""

TEXT_WITHOUT_ARGUMENTS: Final = names(
    "to_csv to_json to_html to_latex to_markdown to_xml write_csv write_json"
)
"""Methods that return a text, and write nothing, if they are called without arguments."""

PATH_METHODS: Final = frozenset({"rename", "replace", "rename_to"})
"""Methods of a path that also texts and tables have, with other arguments."""

FRAME_READERS: Final = names(
    """
    query eval sql ols wls gls glm rlm logit probit poisson mnlogit mixedlm quantreg
    from_formula dmatrix dmatrices timeit
    """
)
"""Functions that look up names of a text in the variables of their caller."""

READS_AT_ONCE: Final = names(
    """
    read readlines readline read_text load safe_load loads convert copy array asarray list tuple
    sorted set loadtxt genfromtxt read_csv read_json read_pickle splitlines sum len
    """
)
"""What consumes a file that is opened in the same expression, so that it does not stay open."""

SAFE_DECORATORS: Final = names(
    """
    abc.abstractmethod contextlib.contextmanager contextlib.asynccontextmanager
    dataclasses.dataclass functools.cache functools.cached_property functools.lru_cache
    functools.wraps functools.total_ordering functools.singledispatch
    torch.no_grad torch.inference_mode torch.enable_grad typing.overload typing.final
    typing.runtime_checkable typing.no_type_check jax.jit staticmethod classmethod property
    """
)
"""Decorators that do not call what they decorate, and read no variables for it."""

SAFE_BASES: Final = names(
    """
    abc.ABC typing.NamedTuple typing.Protocol typing.Generic typing.TypedDict torch.nn.Module
    torch.utils.data.Dataset torch.utils.data.IterableDataset torch.autograd.Function
    torch.optim.Optimizer torch.optim.lr_scheduler.LRScheduler sklearn.base.BaseEstimator
    sklearn.base.TransformerMixin sklearn.base.ClassifierMixin sklearn.base.RegressorMixin
    sklearn.base.ClusterMixin keras.Model keras.layers.Layer keras.callbacks.Callback
    tensorflow.keras.Model tensorflow.keras.layers.Layer tensorflow.keras.callbacks.Callback
    collections.UserDict collections.UserList collections.OrderedDict json.JSONEncoder
    contextlib.ContextDecorator logging.Handler
    """
)
"""Base classes that do not call the methods of a class when it is created."""

MUTATORS: Final = names(
    """
    append extend insert remove pop popitem clear sort reverse update add discard setdefault
    appendleft popleft fill partial_fit fit set_params load_state_dict zero_grad step backward
    train eval put resize itemset shuffle
    """
)
"""Methods that change their object, for the list of changed names; it decides nothing."""

# Of scikit-learn's names with a random_state, those that are random unless it is given.
_RANDOM_OF_SKLEARN: Final = names(
    """
    AdaBoostClassifier AdaBoostRegressor AffinityPropagation BaggingClassifier BaggingRegressor
    BayesianGaussianMixture BernoulliRBM BisectingKMeans DecisionTreeClassifier
    DecisionTreeRegressor DictionaryLearning DummyClassifier EllipticEnvelope ExtraTreeClassifier
    ExtraTreeRegressor ExtraTreesClassifier ExtraTreesRegressor FactorAnalysis FastICA
    GaussianMixture GaussianRandomProjection GradientBoostingClassifier GradientBoostingRegressor
    GroupShuffleSplit HistGradientBoostingClassifier HistGradientBoostingRegressor IsolationForest
    KBinsDiscretizer KMeans LatentDirichletAllocation LinearSVC LinearSVR LocallyLinearEmbedding
    MDS MLPClassifier MLPRegressor MinCovDet MiniBatchDictionaryLearning MiniBatchKMeans
    MiniBatchNMF MiniBatchSparsePCA NMF NeighborhoodComponentsAnalysis Nystroem
    OutputCodeClassifier PCA ParameterSampler PassiveAggressiveClassifier
    PassiveAggressiveRegressor PatchExtractor Perceptron PolynomialCountSketch QuantileTransformer
    RANSACRegressor RBFSampler RandomForestClassifier RandomForestRegressor RandomTreesEmbedding
    RandomizedSearchCV HalvingGridSearchCV HalvingRandomSearchCV RepeatedKFold
    RepeatedStratifiedKFold SGDClassifier SGDOneClassSVM SGDRegressor ShuffleSplit
    SkewedChi2Sampler SparsePCA SparseRandomProjection SpectralBiclustering SpectralClustering
    SpectralCoclustering SpectralEmbedding StratifiedShuffleSplit TSNE TargetEncoder
    TheilSenRegressor TruncatedSVD TunedThresholdClassifierCV affinity_propagation dict_learning
    dict_learning_online estimate_bandwidth extract_patches_2d fast_mcd fastica k_means
    kmeans_plusplus locally_linear_embedding make_biclusters make_blobs make_checkerboard
    make_circles make_classification make_friedman1 make_friedman2 make_friedman3
    make_gaussian_quantiles make_hastie_10_2 make_low_rank_matrix make_moons
    make_multilabel_classification make_regression make_s_curve make_sparse_coded_signal
    make_sparse_spd_matrix make_sparse_uncorrelated make_spd_matrix make_swiss_roll
    mutual_info_classif mutual_info_regression non_negative_factorization permutation_importance
    permutation_test_score quantile_transform randomized_range_finder randomized_svd resample
    shuffle smacof spectral_clustering spectral_embedding train_test_split
    """
)
RANDOM_OPTIONS: Final = names("shuffle probability solver selection sample_size subsample")
"""Arguments with which other names of scikit-learn and PyTorch may draw numbers."""
SEED_ARGUMENTS: Final = names("random_state seed generator rng key")
"""Arguments that make a call independent of the generator of its library."""
_FIXED_OF_TORCH = names(
    """
    Sequential ModuleList ModuleDict ReLU LeakyReLU GELU SiLU ELU Sigmoid Tanh Softmax LogSoftmax
    Flatten Unflatten Identity MaxPool1d MaxPool2d AvgPool1d AvgPool2d AdaptiveAvgPool1d
    AdaptiveAvgPool2d AdaptiveMaxPool2d BatchNorm1d BatchNorm2d LayerNorm GroupNorm Upsample
    Parameter utils
    """
)
"""Of torch.nn's names, those that draw no numbers; neither do the losses."""
_RANDOM_OF_NETWORKX = (
    "random", "erdos", "gnp", "gnm", "gn_", "barabasi", "watts", "stochastic", "louvain", "spring",
    "powerlaw", "geometric", "scale_free", "configuration_model", "fluid", "label_propagation",
    "partition", "approximat",
)  # fmt: skip
_RANDOM_TRANSFORMS = (
    "Random", "ColorJitter", "GaussianNoise", "AutoAugment", "RandAugment", "TrivialAugment",
    "AugMix", "Elastic", "MixUp", "CutMix",
)  # fmt: skip


def effect_of_path(path: str) -> Effect:
    """Return the effect of a dotted name of a module, such as ``numpy.random.rand``."""
    last = path.rpartition(".")[2]
    if path.startswith("torch.nn.") and (last in _FIXED_OF_TORCH or last.endswith("Loss")):
        return PURE
    known = path
    while known:
        if known in RULES:
            return RULES[known]
        known = known.rpartition(".")[0]
    root = path.partition(".")[0]
    if root not in PURE_MODULES:
        return UNKNOWN
    if root == "networkx" and any(word in last for word in _RANDOM_OF_NETWORKX):
        return Effect(EffectKind.RANDOM, _OWN)
    if root == "sklearn" and last in _RANDOM_OF_SKLEARN:
        return RANDOM_NUMPY
    if root == "sklearn" and last.startswith("fetch_"):
        return NETWORK
    if path.startswith("torchvision.transforms.") and last.startswith(_RANDOM_TRANSFORMS):
        return Effect(EffectKind.RANDOM, _TORCH)
    return PURE


def effect_of_method(name: str, *, called: bool) -> Effect:
    """Return the effect of a method or attribute of an object of any type."""
    if called and name.startswith(_WRITERS):
        return WRITES
    return METHODS.get(name, PURE)


def effect_of_builtin(name: str) -> Effect:
    """Return the effect of a name that only Python or IPython defines."""
    if name.startswith("_") and name.strip("_").removeprefix("i").isdigit():
        return NAMESPACE  # an earlier input or output by its number, as in _5 or _i5
    if name in ("_i", "_ii", "_iii", "_ih", "_oh", "_dh"):
        return NAMESPACE
    return _BUILTINS.get(name, PURE)
