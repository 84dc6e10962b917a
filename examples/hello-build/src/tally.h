/* Counts lines, words and bytes, as wc does. */
#ifndef TALLY_H
#define TALLY_H

#include <stdio.h>

struct tally {
    long lines;
    long words;
    long bytes;
};

struct tally tally_of(FILE *input);

#endif
