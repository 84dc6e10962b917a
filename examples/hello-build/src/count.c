#include "tally.h"

#include <ctype.h>

struct tally tally_of(FILE *input) {
    struct tally tally = {0, 0, 0};
    int inside_word = 0;
    int character;
    while ((character = getc(input)) != EOF) {
        tally.bytes++;
        if (character == '\n') tally.lines++;
        if (isspace(character)) {
            inside_word = 0;
        } else if (!inside_word) {
            inside_word = 1;
            tally.words++;
        }
    }
    return tally;
}
