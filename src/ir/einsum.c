/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/einsum.h"

#include <string.h>

/* ---- Reading --------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static tssa_status *parse_term(const char **next, struct einsum_term *term)
{
    const char *at = *next;
    term->n_letters = 0;
    term->ellipsis = -1;
    for (; *at && *at != ',' && *at != '-'; at++) {
        if (*at == ' ')
            continue;
        if (strncmp(at, "...", 3) == 0 && term->ellipsis < 0) {
            term->ellipsis = term->n_letters;
            at += 2;
        } else if (!is_letter(*at)) {
            return ERROR(TSSA_MALFORMED, "the equation has a term with '%c'", *at);
        } else if (term->n_letters == TSSA_MAX_RANK) {
            return ERROR(TSSA_MALFORMED, "a term of the equation is longer than any rank");
        } else {
            term->letters[term->n_letters++] = *at;
        }
    }
    *next = at;
    return NULL;
}

/* How often a letter occurs in the operands' terms. */
static int occurrences(const struct einsum *e, char letter)
{
    int count = 0;
    for (int i = 0; i < e->n_operands; i++)
        for (int k = 0; k < e->operands[i].n_letters; k++)
            count += e->operands[i].letters[k] == letter;
    return count;
}

/* The implicit output: the ellipsis, then the letters that occur once, in ASCII order. */
static tssa_status *make_output(struct einsum *e)
{
    e->out.n_letters = 0;
    e->out.ellipsis = -1;
    for (int i = 0; i < e->n_operands; i++)
        if (e->operands[i].ellipsis >= 0)
            e->out.ellipsis = 0;
    for (int c = 'A'; c <= 'z'; c++) {
        char letter = (char)c;
        if (occurrences(e, letter) != 1)
            continue;
        if (e->out.n_letters == TSSA_MAX_RANK)
            return ERROR(TSSA_MALFORMED, "the equation has too many free letters");
        e->out.letters[e->out.n_letters++] = letter;
    }
    return NULL;
}

static tssa_status *check_output(const struct einsum *e)
{
    for (int i = 0; i < e->out.n_letters; i++) {
        char letter = e->out.letters[i];
        if (occurrences(e, letter) == 0)
            return ERROR(TSSA_MALFORMED, "the equation's output has '%c', no operand has", letter);
        if (memchr(e->out.letters, letter, (size_t)i))
            return ERROR(TSSA_MALFORMED, "the equation's output has '%c' twice", letter);
    }
    return NULL;
}

tssa_status *einsum_parse(const char *equation, struct einsum *e)
{
    e->n_operands = 0;
    for (const char *at = equation;; at++) {
        if (e->n_operands == EINSUM_MAX_OPERANDS)
            return ERROR(TSSA_UNSUPPORTED, "the equation has more than %d operands",
                         EINSUM_MAX_OPERANDS);
        TRY(parse_term(&at, &e->operands[e->n_operands++]));
        if (*at == ',')
            continue;
        if (*at == '\0')
            return make_output(e);
        if (at[1] != '>')
            return ERROR(TSSA_MALFORMED, "the equation has '-' without '>'");
        at += 2;
        TRY(parse_term(&at, &e->out));
        if (*at)
            return ERROR(TSSA_MALFORMED, "the equation has '%c' in its output", *at);
        return check_output(e);
    }
}

/* ---- Labels ---------------------------------------------------------------------------------- */

/* Labels: the axes of ellipses first, then each letter at its first use. */
struct labels {
    int n_ellipsis, count;
    int of_letter[128]; /* -1: none yet */
};

static uint8_t label_of(struct labels *labels, char letter)
{
    int *label = &labels->of_letter[(unsigned char)letter];
    if (*label < 0)
        *label = labels->count++;
    return (uint8_t)*label;
}

/* `n_ellipsis` of the term's own; shorter ones are the last axes of the longest. */
static void label_term(struct labels *labels, const struct einsum_term *term, int n_ellipsis,
                       uint8_t *axes)
{
    int rank = 0;
    for (int i = 0; i <= term->n_letters; i++) {
        for (int k = 0; term->ellipsis == i && k < n_ellipsis; k++)
            axes[rank++] = (uint8_t)(labels->n_ellipsis - n_ellipsis + k);
        if (i < term->n_letters)
            axes[rank++] = label_of(labels, term->letters[i]);
    }
}

tssa_status *einsum_resolve(const struct einsum *e, int n_operands, const int *ranks,
                            struct einsum_axes *axes)
{
    struct labels labels = {0};
    memset(labels.of_letter, -1, sizeof labels.of_letter);
    if (n_operands != e->n_operands)
        return ERROR(TSSA_MALFORMED, "the equation has %d terms for %d operands", e->n_operands,
                     n_operands);
    for (int i = 0; i < n_operands; i++) {
        int rest = ranks[i] - e->operands[i].n_letters;
        if (rest < 0 || (rest > 0 && e->operands[i].ellipsis < 0))
            return ERROR(TSSA_MALFORMED, "operand %d has rank %d, the equation says %d", i,
                         ranks[i], e->operands[i].n_letters);
        labels.n_ellipsis = rest > labels.n_ellipsis ? rest : labels.n_ellipsis;
    }
    labels.count = labels.n_ellipsis;
    int n_ellipsis = e->out.ellipsis >= 0 ? labels.n_ellipsis : 0;
    axes->out_rank = e->out.n_letters + n_ellipsis;
    if (axes->out_rank > TSSA_MAX_RANK)
        return ERROR(TSSA_LIMIT, "the result would have rank %d", axes->out_rank);
    for (int i = 0; i < n_operands; i++)
        label_term(&labels, &e->operands[i], ranks[i] - e->operands[i].n_letters,
                   axes->operands[i]);
    label_term(&labels, &e->out, n_ellipsis, axes->out);
    axes->n_labels = labels.count;
    return NULL;
}
