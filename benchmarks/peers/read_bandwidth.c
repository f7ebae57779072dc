// Prints how fast all of a large buffer is read, in bytes per second: the best of a few passes.
//     read-bandwidth THREADS

#define _GNU_SOURCE  // for madvise
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PASSES = 3, LANES = 64, HUGE_PAGE = 2 << 20 };
static const size_t WORDS = (size_t)1 << 27;  // 1 GiB: far more than any cache holds

typedef struct {
    const uint64_t *begin, *end;
    uint64_t sum;
} Part;

static void *read_part(void *argument) {
    Part *part = argument;
    uint64_t lanes[LANES] = {0};  // independent sums, which the compiler keeps in vector registers
    for (const uint64_t *at = part->begin; at + LANES <= part->end; at += LANES) {
        for (int lane = 0; lane < LANES; ++lane) lanes[lane] += at[lane];
    }
    for (int lane = 0; lane < LANES; ++lane) part->sum += lanes[lane];
    return NULL;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int count, char **arguments) {
    int threads = count == 2 ? atoi(arguments[1]) : 0;
    uint64_t *words = aligned_alloc(HUGE_PAGE, WORDS * sizeof(uint64_t));
    if (threads < 1 || words == NULL) return 1;
    // Weights lie on huge pages, from which some processors read faster; without them the bound would be none.
    if (madvise(words, WORDS * sizeof(uint64_t), MADV_HUGEPAGE) != 0) perror("no huge pages");
    memset(words, 1, WORDS * sizeof(uint64_t));
    pthread_t *handles = calloc(threads, sizeof *handles);
    Part *parts = calloc(threads, sizeof *parts);
    double best = 0.0;
    uint64_t sum = 0;
    for (int pass = 0; pass < PASSES; ++pass) {
        double begin = now();
        for (int i = 0; i < threads; ++i) {
            parts[i] = (Part){words + WORDS / threads * i, words + WORDS / threads * (i + 1), 0};
            if (pthread_create(&handles[i], NULL, read_part, &parts[i]) != 0) return 1;
        }
        for (int i = 0; i < threads; ++i) pthread_join(handles[i], NULL);
        double rate = (double)(WORDS / threads * threads * sizeof(uint64_t)) / (now() - begin);
        if (rate > best) best = rate;
        for (int i = 0; i < threads; ++i) sum += parts[i].sum;
    }
    fprintf(stderr, "%llu\n", (unsigned long long)sum);  // so that nothing is optimised away
    printf("%.0f\n", best);
    return 0;
}
