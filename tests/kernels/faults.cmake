# Of the index of a text; text_index_test.cpp. It forgets one in eight.
auspex_fault(1 accept_commit.searches [[        index[at] = now;]] [[        if ((at & 7u) != 0u) index[at] = now;]])
