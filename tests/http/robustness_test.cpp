// Damaged requests: the reader by itself, and a server that goes on serving.
#include "http_peers.h"
#include "mutations.h"

namespace auspex::test::robustness_test {
namespace {

TEST(HttpRobustness, DamagedRequestsMeanTheSameHoweverTheyAreCut) {
    const size_t n_whole = expect_robust(1, 20000);
    EXPECT_GT(n_whole, 4000u); // neither all nor none of them is broken
    EXPECT_LT(n_whole, 19000u);
}

TEST(HttpRobustness, GoodRequestsComeInAnyPieces) {
    std::mt19937_64 random(4);
    for (const std::string& request : good_requests())
        for (size_t cut = 1; cut < request.size(); ++cut)
            for (const size_t most : {size_t{1}, size_t{3}, request.size()}) {
                const Understood in_two = understand(request.substr(0, cut), {}, random, most);
                const Understood whole = understand(request, {}, random, most);
                EXPECT_EQ(in_two.requests, "");
                EXPECT_EQ(in_two.refused, 0);
                EXPECT_NE(whole.requests, "");
                EXPECT_EQ(whole.refused, 0);
                EXPECT_EQ(whole.n_left, 0u);
            }
}

TEST(HttpRobustness, AServerSurvivesThem) {
    TestServer server({.header_time = 500ms, .body_time = 500ms});
    std::mt19937_64 random(2);
    Client good(server);
    for (int i = 0; i < 1500; ++i) {
        Client client(server);
        client.send(mutated(random));
        switch (random() % 4) {
        case 0:
            client.reset();
            break;
        case 1:
            client.close();
            break;
        case 2:
            client.half_close();
            while (client.read_some()) {
            }
            break;
        case 3:
            break;
        }
    }
    EXPECT_EQ(good.ask(get("/")).status, 200);
    good.close();
    EXPECT_TRUE(wait_until([&] { return server.server.counts().open == 0; }));
}

} // namespace
} // namespace auspex::test::robustness_test
