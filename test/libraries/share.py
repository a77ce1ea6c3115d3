"""The fixed share of each library's tests that test/libraries/run runs. Names are those of Debian
testing's packages of December 2026. Most suites are instances of one test for a list of types, by
number: */0.* is the first type of each suite."""

import dataclasses
import pathlib


@dataclasses.dataclass
class Program:
    name: str
    tests: int  # that the selection has: fewer that pass are a failure
    filter: str = "*"  # of GoogleTest
    options: tuple = ()


@dataclasses.dataclass
class Records:
    """A file of tests, and the place of a record's function in it (records.py)."""

    file: pathlib.Path
    name: str
    function_at: int
    functions: dict  # how many tests of each


@dataclasses.dataclass
class Library:
    package: str
    programs: list
    records: Records = None


def each(count, functions):
    return dict.fromkeys(functions.split(), count)


def types(*numbers, suite="*"):
    """The filter of these instances of a suite, or of each."""
    return ":".join(f"{suite}/{number}.*" for number in numbers)


LIBRARIES = {
    "rocprim": Library(
        "librocprim-tests",
        [
            Program("test_arg_index_iterator", 8),
            Program("test_basic", 2),
            Program("test_block_load_store", 38, types(0, 9, 14, 25)),
            Program("test_block_scan", 12, types(0, suite="*TestsIntegral")),
            Program("test_block_shuffle", 8, types(0)),
            Program("test_config_dispatch", 4),
            Program("test_constant_iterator", 4),
            Program("test_counting_iterator", 4),
            Program("test_device_adjacent_difference", 4, types(0, 1, 2, 3, suite="*DifferenceTests")),
            Program("test_device_adjacent_find", 2, types(0, 1)),
            Program("test_device_batch_memcpy", 2, types(0, 5)),
            Program("test_device_binary_search", 3, types(0)),
            Program("test_discard_iterator", 3),
            Program("test_hip_api", 1),
            Program("test_hipgraph_algs", 1),
            Program("test_hipgraph_basic", 3),
            Program("test_internal_merge_path", 1),
            Program("test_predicate_iterator", 7),
            Program("test_reverse_iterator", 7),
            Program("test_temporary_storage_partitioning", 6),
            Program("test_thread", 8, types(0, 5, 9, 14)),
            Program("test_thread_algos", 10, types(0, 1)),
            Program("test_transform_iterator", 4),
            Program("test_warp_exchange", 8, types(0, 1, 2, 4, suite="WarpExchangeTest")),
            Program("test_warp_load", 8, types(0, 1, 2, 3)),
            Program("test_warp_sort", 4, types(0, 1, suite="*BasedTestsIntegral")),
            Program("test_warp_store", 8, types(0, 1, 2, 3)),
            Program("test_zip_iterator", 4),
        ],
    ),
    "hipcub": Library(
        "libhipcub-tests",
        [
            Program("test_hipcub_block_exchange", 6, types(0)),
            Program("test_hipcub_block_radix_sort", 2, types(0)),
            Program("test_hipcub_block_reduce", 3, types(0)),
            Program("test_hipcub_block_scan", 13, types(0)),
            Program("test_hipcub_device_for", 2, types(0)),
            Program("test_hipcub_grid", 3),
            Program("test_hipcub_vector", 4, types(0)),
            Program("test_hipcub_warp_exchange", 5, types(0)),
            Program("test_hipcub_warp_merge_sort", 4, types(0)),
            Program("test_hipcub_warp_scan", 6, types(0)),
        ],
    ),
    # These are Thrust's own tests: their options are those of its programs.
    "rocthrust": Library(
        "librocthrust-tests",
        [
            Program(f"test_thrust_{name}", tests, "", ("--sizes=tiny",))
            for name, tests in (
                ("copy_n", 23),
                ("gather", 17),
                ("merge", 8),
                ("partition", 64),
                ("reduce_by_key", 7),
            )
        ],
    ),
    "rocfft": Library(
        "librocfft0-tests",
        [
            Program(
                "rocfft-test",
                8,
                ":".join(
                    [
                        "pow2_1D/accuracy_test.vs_fftw/*_len_64_single_?p_batch_1_*CI_ostride_1_CI_*",
                        "pow2_1D/accuracy_test.vs_fftw/real_*_len_64_double_?p_batch_1_*",
                        "pow3_1D/accuracy_test.vs_fftw/*_len_81_double_ip_batch_1_*CI_ostride_1_CI_*",
                        "prime_1D/accuracy_test.vs_fftw/*_len_17_single_op_batch_1_*CI_ostride_1_CI_*",
                        "pow2_2D/accuracy_test.vs_fftw/*_len_16_16_single_ip_batch_1_*CI_ostride_*CI_*",
                        "rocfft_UnitTest.default_load_callback_complex_single",
                    ]
                ),
                ("--seed", "1"),  # which transforms of a rarer kind are left out
            )
        ],
    ),
    "rocblas": Library(
        "librocblas4-tests",
        [Program("rocblas-test", 78)],
        Records(
            pathlib.Path("/usr/share/librocblas4-tests/data/rocblas_gtest.data"),
            "rocBLAS",
            0,
            {
                **each(3, "asum asum_batched asum_strided_batched axpy copy copy_batched dot dot_batched"),
                **each(3, "dot_strided_batched iamax iamax_batched iamax_strided_batched iamin iamin_batched"),
                **each(3, "nrm2 nrm2_batched nrm2_strided_batched rot rot_batched rot_strided_batched"),
                **each(3, "rotg rotg_batched rotg_strided_batched rotm rotm_batched rotm_strided_batched"),
            },
        ),
    ),
    "rocsolver": Library(
        "librocsolver0-tests",
        [
            Program(
                "rocsolver-test",
                17,
                ":".join(
                    f"checkin_lapack/{name}"
                    for name in (
                        "GETRF.__double/24",
                        "GETRF.batched__float_complex/18",
                        "POTRF.__double/11",
                        "GEQRF.__float_complex/14",
                        "GETRS.strided_batched__double/20",
                        "GESV.__double/26",
                        "POTRS.batched__double/20",
                        "GETRI.__double/4",
                        "GELS.__double/53",
                        "SYEV.__double/31",
                        "GESVD.__double/133",
                        "SYTRF.__double/6",
                        "STERF.__double/4",
                        "LARFT.__double/23",
                        "ORGQR.__double/16",
                        "TRTRI.__double/6",
                        "GEBRD.__double/14",
                    )
                ),
            )
        ],
    ),
    "rocsparse": Library(
        "librocsparse1-tests",
        [Program("rocsparse-test", 48)],
        Records(
            pathlib.Path("/usr/share/librocsparse1-tests/data/rocsparse_test.data"),
            "rocSPARSE",
            539,
            {
                **each(3, "axpby axpyi doti dotci gather scatter gthr gthrz rot sctr"),
                **each(3, "coomv csrmv csritsv csrsv ellmv hybmv"),
            },
        ),
    ),
}
