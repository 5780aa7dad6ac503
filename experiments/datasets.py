"""The papers' tables: public, historical data to try the methods on.

Each table is read from the folder that the environment variable CLOAKGP_DATA names, or else made
from the public repository that it comes from, at a pinned commit. Either way a pinned SHA-256 must
agree: of the file in the folder, and of what is downloaded and of what is made of it. No table is
part of this package.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pooch
from numpy.typing import NDArray

FOLDER_VARIABLE = "CLOAKGP_DATA"

FILE_SHA256 = {
    "howell1.csv": "768d2fb53d44490b35260903f58955548b26f587e7afaf4e00b2603715279bbd",
    "hmeq.csv": "8a2e0b53075ad8e9c8ab1d1a1c0f56b9791b29ade1fc182f9ea7365a2f5044f7",
    "mnist_subset.npz": "c7859dbff1a95b661b4697f7a52f30a41ef89e1932255200e80edf0b0fcb5464",
    "citibike.csv.gz": "122b8b6c8f6bf934025b023223a5e38a0fa62fde059b64f37f96eb339392421e",
    "london_prices.csv.gz": "a9faecb7db54884f7ae2795217ec4843546c12df4720f863ba11e2e795b01d36",
}
# Of the uncompressed contents of derived tables: compressed bytes depend on the compressor.
CONTENT_SHA256 = {
    "mnist_subset.npz": "6c31cb4c488b6a6a0cfd4c21dd3a5fa3e242a2f6a63d167775806195d2b6fc5a",
    "citibike.csv.gz": "0f36ff7fed61a83bfb570cf324385fe220cfc4df81fb5bf9f160961377d3f4b7",
    "london_prices.csv.gz": "daaa0f5732105c15dba36b1fe41eeca36e98d51819b1057e7b9d1d985e427b74",
}

LONDON_COLUMNS = ["easting", "northing", "price", "years"]
MNIST_SEED, MNIST_PER_CLASS = 20180401, 100
CITIBIKE_SEED, CITIBIKE_ROWS = 201606, 60_000


class DatasetUnavailableError(RuntimeError):
    """A table is not in the folder of CLOAKGP_DATA, or cannot be downloaded; says what to do."""


class DatasetChecksumError(ValueError):
    """A table was found, and is not the one that is meant."""


@dataclass(frozen=True)
class Origin:
    """A file of a public GitHub repository, at one commit: owner/name/commit/path.

    Examples
    --------
    >>> Origin("owner/name/1f00/data/table.csv", sha256="00").url
    'https://raw.githubusercontent.com/owner/name/1f00/data/table.csv'
    """

    address: str
    sha256: str

    @property
    def url(self) -> str:
        """Where the file is downloaded from."""
        return f"https://raw.githubusercontent.com/{self.address}"


KUNG = Origin(
    "rmcelreath/rethinking/ac1b3b2cda83f3e14096e2d997a6e30ad109eeee/data/Howell1.csv",
    sha256=FILE_SHA256["howell1.csv"],
)
HMEQ = Origin(
    "vidush-dixit/hmeq/10502cb3f6979187efc864198711d3a710f12d86/dataset/hmeq.csv",
    sha256=FILE_SHA256["hmeq.csv"],
)
LONDON = Origin(
    "lionfish0/dp/b7c430cb25321f3cdc14b1aba2724bb203065035/price_dataset10k.csv",
    sha256="5b444a4bca972fd828f3cf382b8e8e10a3fbd5ac7985d81c27b891869d9ca999",
)
MNIST_IMAGES = Origin(
    "kelas/mnist/283b387221ab46655e600cfcc25d843bb14292b9/t10k-images-idx3-ubyte.gz",
    sha256="167310007f03058885c7e95e6c0b19c20de5c7fd3031f4cbdadc9014a523d80b",
)
MNIST_LABELS = Origin(
    "kelas/mnist/283b387221ab46655e600cfcc25d843bb14292b9/t10k-labels-idx1-ubyte.gz",
    sha256="fc607395669ec21321ea83e4b82c0544b7e8e63ff5b34337c06bc0a17cc0da3c",
)
_CITIBIKE = "rolyatmax/citibike-trips/89a46dadbbff0f5737316cc1a0ac55296347fbd9/cleaned"
_OLDER_CITIBIKE = "rolyatmax/citibike-trips/8f056f21ab9822d75541aea8d49d3db0ebbcec36/cleaned"
CITIBIKE_TRIPS = tuple(
    Origin(f"{_CITIBIKE}/trips-{day}.csv", sha256=sha256)
    for day, sha256 in (
        ("2017-06-03", "c28f51a8cbe6be78193e6d35dc828d34aaa99d23481f8b2a8e7ef4c1fde8571d"),
        ("2017-06-04", "8e8b9e5ca45bc642acde4ad14156479d608aae08c70b44d93f232bc9d695d76b"),
        ("2017-06-05", "dd569895c76da2895b36210ec9959da84c85acc64f33104d92b8f321b5d1df31"),
        ("2017-06-09", "fd0c82d54c24a991273273dd7e4c4210a6468eaef7a75cde17bc02c93e57cebc"),
    )
)
# The newest list of stations, and an older one for those that it no longer has.
CITIBIKE_STATIONS = (
    Origin(
        f"{_CITIBIKE}/stations.csv",
        sha256="88719ad422589d4e5abec42fd8ecce6191dc0260ef47d57e1df44f29769b9c5c",
    ),
    Origin(
        f"{_OLDER_CITIBIKE}/stations.csv",
        sha256="696352bbf946c297ad2bfbc50b49499222a06e6c7d01505c56d0e2f86e799e8d",
    ),
)


@dataclass(frozen=True, eq=False)
class Digits:
    """Handwritten digits.

    Attributes
    ----------
    images : array of shape (N, 28, 28), uint8
        Grey levels, 0 to 255.
    labels : array of shape (N,), uint8
        0 to 9.
    index : array of shape (N,), int32
        Rows in the MNIST test set.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    index: NDArray[np.int32]


def load_kung(*, male: bool | None = None) -> pd.DataFrame:
    """Return the census of the Dobe area !Kung San (N. Howell, late 1960s).

    Parameters
    ----------
    male : bool, optional
        Only these rows; the papers use the 287 rows with ``male=False``. All 544 if not given.

    Returns
    -------
    DataFrame
        Columns height (cm), weight (kg), age (years), male (0 or 1); no missing values.

    Raises
    ------
    DatasetUnavailableError
        If it is neither in the folder of CLOAKGP_DATA nor can be downloaded.
    DatasetChecksumError
        If what is there is another file.
    """
    content = _from_folder("howell1.csv")
    if content is None:
        content = _download(KUNG, instead="howell1.csv")
    return select_sex(pd.read_csv(io.BytesIO(content), sep=";"), male=male)


def select_sex(kung: pd.DataFrame, *, male: bool | None) -> pd.DataFrame:
    """Return the rows of one sex, numbered from zero, or all if ``male`` is None.

    Examples
    --------
    >>> select_sex(pd.DataFrame({"height": [150.0, 160.0], "male": [0, 1]}), male=False)
       height  male
    0   150.0     0
    """
    if male is None:
        return kung
    return kung[kung["male"] == int(male)].reset_index(drop=True)


def load_hmeq() -> pd.DataFrame:
    """Return HMEQ, 5960 home equity loans and whether the applicant defaulted.

    Returns
    -------
    DataFrame
        Columns BAD (0 or 1), LOAN, MORTDUE, VALUE (USD), REASON, JOB, YOJ (years), DEROG, DELINQ,
        CLAGE (months), NINQ, CLNO, DEBTINC (percent). Values are missing in most columns, and are
        missing more often where BAD is 1: dropping incomplete rows changes the task.

    Raises
    ------
    DatasetUnavailableError, DatasetChecksumError
        As `load_kung`.
    """
    content = _from_folder("hmeq.csv")
    if content is None:
        content = _download(HMEQ, instead="hmeq.csv")
    return pd.read_csv(io.BytesIO(content))


def load_london() -> pd.DataFrame:
    """Return 10,000 sale prices of homes in and around London, 1995 to 2017.

    Returns
    -------
    DataFrame
        Columns easting, northing (metres, British National Grid, of the postcode), price (GBP, not
        deflated), years (year of sale); integers without missing values.

    Raises
    ------
    DatasetUnavailableError, DatasetChecksumError
        As `load_kung`.
    """
    name = "london_prices.csv.gz"
    content = _from_folder(name)
    if content is not None:
        return pd.read_csv(io.BytesIO(gzip.decompress(content)))
    prices = pd.read_csv(io.BytesIO(_download(LONDON, instead=name)))
    return _checked_table(prices[LONDON_COLUMNS].astype(np.int64), name=name)


def load_citibike() -> pd.DataFrame:
    """Return 60,000 trips by Citi Bike, New York, on 3, 4, 5 and 9 June 2017.

    Returns
    -------
    DataFrame
        Columns start_lat, start_lon, end_lat, end_lon (degrees, of the stations), tripduration
        (seconds; at least 61, with a tail to 4.2 million), usertype ("Subscriber" or "Customer").

    Raises
    ------
    DatasetUnavailableError, DatasetChecksumError
        As `load_kung`.
    """
    name = "citibike.csv.gz"
    content = _from_folder(name)
    if content is not None:
        return _read_exactly(gzip.decompress(content))
    days = [pd.read_csv(io.BytesIO(_download(day, instead=name))) for day in CITIBIKE_TRIPS]
    newest, older = (
        _read_exactly(_download(station, instead=name)) for station in CITIBIKE_STATIONS
    )
    gone = older[~older["station_id"].isin(newest["station_id"])]
    stations = pd.concat([newest, gone]).set_index("station_id")
    trips = pd.concat(days, ignore_index=True)
    known = trips["start_station"].isin(stations.index) & trips["end_station"].isin(stations.index)
    trips = trips[known]
    starts, ends = stations.loc[trips["start_station"]], stations.loc[trips["end_station"]]
    joined = pd.DataFrame(
        {
            "start_lat": starts["latitude"].to_numpy(),
            "start_lon": starts["longitude"].to_numpy(),
            "end_lat": ends["latitude"].to_numpy(),
            "end_lon": ends["longitude"].to_numpy(),
            "tripduration": trips["duration"].to_numpy(),
            "usertype": np.where(trips["subscriber"] == 1, "Subscriber", "Customer"),
        }
    )
    drawn = np.random.default_rng(CITIBIKE_SEED).permutation(len(joined))[:CITIBIKE_ROWS]
    return _checked_table(joined.iloc[drawn].reset_index(drop=True), name=name)


def load_mnist_subset() -> Digits:
    """Return 1000 digits of the MNIST test set, 100 of each, in random order.

    Raises
    ------
    DatasetUnavailableError, DatasetChecksumError
        As `load_kung`.
    """
    name = "mnist_subset.npz"
    content = _from_folder(name)
    if content is not None:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return Digits(arrays["images"], arrays["labels"], arrays["index"])
    pixels = gzip.decompress(_download(MNIST_IMAGES, instead=name))
    images = np.frombuffer(pixels, dtype=np.uint8, offset=16).reshape(-1, 28, 28)
    labels = np.frombuffer(
        gzip.decompress(_download(MNIST_LABELS, instead=name)), dtype=np.uint8, offset=8
    )
    rng = np.random.default_rng(MNIST_SEED)
    drawn = [rng.permutation(np.flatnonzero(labels == d))[:MNIST_PER_CLASS] for d in range(10)]
    index = rng.permutation(np.concatenate(drawn)).astype(np.int32)
    digits = Digits(images[index], labels[index], index)
    _check(_digit_bytes(digits), CONTENT_SHA256[name], what=f"what was made of {MNIST_IMAGES.url}")
    return digits


def _digit_bytes(digits: Digits) -> bytes:
    return digits.images.tobytes() + digits.labels.tobytes() + digits.index.tobytes()


def _checked_table(table: pd.DataFrame, *, name: str) -> pd.DataFrame:
    content = table.to_csv(index=False, lineterminator="\n").encode()
    _check(content, CONTENT_SHA256[name], what=f"what was made for {name} from its origin")
    return table


def _from_folder(name: str) -> bytes | None:
    """Return a file of the folder of CLOAKGP_DATA, or None if that is not set."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return None
    path = Path(folder) / name
    if not path.is_file():
        raise DatasetUnavailableError(
            f"{name} is not in {folder}, the folder that {FOLDER_VARIABLE} names: put it there, or "
            f"unset {FOLDER_VARIABLE} to have it made from its public origin"
        )
    content = path.read_bytes()
    _check(content, FILE_SHA256[name], what=str(path))
    return content


def _download(origin: Origin, *, instead: str) -> bytes:
    """Return a file of a public repository, from pooch's cache if it is there."""
    try:
        path = pooch.retrieve(
            origin.url, known_hash=f"sha256:{origin.sha256}", path=pooch.os_cache("cloakgp")
        )
    except OSError as error:
        # The network's own traceback is a hundred lines that say the same.
        raise DatasetUnavailableError(
            f"{origin.url} could not be downloaded ({type(error).__name__}): try again with a "
            f"network that reaches it, or set {FOLDER_VARIABLE} to a folder with {instead} "
            f"(SHA-256 {FILE_SHA256[instead]})"
        ) from None
    except ValueError as error:
        raise DatasetChecksumError(
            f"{origin.url} is not the file that is meant: {error}"
        ) from error
    return Path(path).read_bytes()


def _read_exactly(content: bytes) -> pd.DataFrame:
    """Read numbers to the last digit, which pandas' own parser does since its version 3 alone."""
    return pd.read_csv(io.BytesIO(content), engine="pyarrow")


def _check(content: bytes, sha256: str, *, what: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DatasetChecksumError(f"{what} has SHA-256 {found}, expected {sha256}: not that table")
