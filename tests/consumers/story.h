/* Shared by the consumer programs: runs a few tokens through an engine made from `desc`, as any host would. */
#ifndef AUSPEX_CONSUMER_STORY_H
#define AUSPEX_CONSUMER_STORY_H

#include <auspex/auspex.h>

#include <stdio.h>
#include <string.h>

static void print_log(void* user_data, auspex_log_level level, const char* message) {
    (void)user_data;
    if (level >= AUSPEX_LOG_WARNING) fprintf(stderr, "auspex: %s\n", message);
}

/* Returns 0 when `want_tokens` tokens came out. */
static int tell_story(auspex_engine_desc* desc, uint32_t want_tokens) {
    static const char prompt[] = "Once upon a time";
    auspex_engine* engine = NULL;
    auspex_sequence sequence = {0};
    auspex_sequence_desc sequence_desc;
    auspex_token tokens[64];
    size_t n_tokens = 0;
    auspex_status status;

    desc->log = print_log;
    status = auspex_engine_create(desc, &engine);
    if (status >= 0) status = auspex_sequence_desc_init(&sequence_desc, sizeof sequence_desc);
    if (status >= 0) {
        sequence_desc.prompt_text = prompt;
        sequence_desc.prompt_text_bytes = strlen(prompt);
        sequence_desc.max_tokens = want_tokens;
        sequence_desc.ignore_eos = 1;
        status = auspex_sequence_create(engine, &sequence_desc, &sequence);
    }
    while (status >= 0) {
        status = auspex_engine_step(engine, 0, NULL);
        if (status < 0 || status == AUSPEX_FINISHED) break;
        status = auspex_engine_wait(engine, 1000);
    }
    if (status >= 0) status = auspex_sequence_read_tokens(engine, sequence, tokens, 64, &n_tokens);
    auspex_engine_destroy(engine);
    if (status < 0) {
        fprintf(stderr, "failed: %s\n", auspex_status_text(status));
        return 1;
    }
    printf("%u of %u tokens\n", (unsigned)n_tokens, (unsigned)want_tokens);
    return n_tokens == want_tokens ? 0 : 1;
}

#endif
