// The native kernels against double precision, without Python: what runs under sanitizers and under an emulator of
// another architecture. Every instruction set that the machine has, one and three threads.
//
// `check ROUNDS`, or `check ROUNDS alone`: no chunk is computed by two threads at once.
#include "check.h"

#include <cstdlib>

int main(int argc, char** argv) {
    using namespace check;
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
    claims_are_recomputed = argc < 3;
    check_threads();
    check_ranks();
    for (int isa = 0; isa < kNumIsas; ++isa) {
        if (!set_isa(static_cast<Isa>(isa))) continue;
        for (const int threads : {1, 3}) {
            ThreadPool pool(threads);
            for (int round = 0; round < rounds; ++round) {
                check_attention(pool);
                check_gemm(pool);
                check_elementwise(pool);
                check_program(pool);
                check_logprobs(pool);
                if (round % 4 == 0) check_sampling(pool);
                check_claims(pool);
                check_experts(pool);
            }
            const Pauses pauses;
            for (int round = 0; threads > 1 && round < rounds; ++round) {
                check_attention(pool);
                check_gemm(pool);
                if (round % 4 == 0) check_program(pool);
            }
            const bool seen = threads == 1 || rounds < 10 || !claims_are_recomputed || pool.counts().recomputed > 0;
            expect(seen, "chunks computed for threads that paused", 0, 1);
        }
        std::printf("instruction set %d: %s\n", isa, failures == 0 ? "ok" : "failed");
        std::fflush(stdout);
    }
    return failures == 0 ? 0 : 1;
}
