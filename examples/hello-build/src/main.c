#include "tally.h"

int main(void) {
    struct tally tally = tally_of(stdin);
    printf("%ld lines, %ld words, %ld bytes\n", tally.lines, tally.words, tally.bytes);
    return 0;
}
