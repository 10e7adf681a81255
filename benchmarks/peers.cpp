// The C++ peers of benchmarks/cpu.py, behind C calls: C[i] = A[i] B[i], float, square, row-major, dense.
// Built on the spot by benchmarks/peers.py where the headers are installed; no part of the package.
#ifdef WITH_EIGEN
#include <Eigen/Dense>

template <int S> static void eigen_fixed(const float *a, const float *b, float *c, long n)
{
    using Matrix = Eigen::Matrix<float, S, S, Eigen::RowMajor>;
    for (long i = 0; i < n; i++) {
        Eigen::Map<const Matrix> A(a + i * S * S), B(b + i * S * S);
        Eigen::Map<Matrix>(c + i * S * S).noalias() = A * B;
    }
}

extern "C" int eigen_f32(int size, const float *a, const float *b, float *c, long n, long calls)
{
    for (long i = 0; i < calls; i++) {
        switch (size) {
        case 4: eigen_fixed<4>(a, b, c, n); break;
        case 8: eigen_fixed<8>(a, b, c, n); break;
        case 16: eigen_fixed<16>(a, b, c, n); break;
        default: return 0;
        }
        asm volatile("" ::: "memory");
    }
    return 1;
}
#endif

#ifdef WITH_LIBXSMM
#include <libxsmm.h>

extern "C" int libxsmm_f32(int size, const float *a, const float *b, float *c, long n, long calls)
{
    // LIBXSMM is column-major: C^T = B^T A^T, so A and B change places.
    const libxsmm_gemm_shape shape =
        libxsmm_create_gemm_shape(size, size, size, size, size, size, LIBXSMM_DATATYPE_F32, LIBXSMM_DATATYPE_F32,
                                  LIBXSMM_DATATYPE_F32, LIBXSMM_DATATYPE_F32);
    const libxsmm_gemmfunction run =
        libxsmm_dispatch_gemm(shape, LIBXSMM_GEMM_FLAG_BETA_0, LIBXSMM_GEMM_PREFETCH_NONE);
    if (!run) return 0;
    const long step = (long)size * size;
    libxsmm_gemm_param call = {};
    for (long repeat = 0; repeat < calls; repeat++)
        for (long i = 0; i < n; i++) {
            call.a.primary = (void *)(b + i * step);
            call.b.primary = (void *)(a + i * step);
            call.c.primary = c + i * step;
            run(&call);
        }
    return 1;
}
#endif
