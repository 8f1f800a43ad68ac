// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "node.h"

namespace bench {
namespace {

[[noreturn]] void spin() {
    for (volatile unsigned turns = 0;;) turns = turns + 1;
}

// Copies one half over the other.
[[noreturn]] void stream(std::vector<char>& memory) {
    const std::size_t half = memory.size() / 2;
    for (;;) {
        std::memcpy(memory.data(), memory.data() + half, half);
        std::atomic_signal_fence(std::memory_order_seq_cst);  // the copy is wanted
    }
}

// Where the machine does not say how large it is, it is taken for one of 64 MiB.
std::size_t last_level_cache() {
    const long known = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL4_CACHE_SIZE));
    return known > 0 ? static_cast<std::size_t>(known) : std::size_t{64} << 20;
}

}  // namespace

void run_neighbour(bool streaming) {
    std::vector<char> memory(streaming ? 2 * last_level_cache() : 0);  // written here, so that it is there
    std::cout << "listening" << std::endl;
    std::string go;
    if (!std::getline(std::cin, go)) return;
    std::thread([streaming, memory = std::move(memory)]() mutable { streaming ? stream(memory) : spin(); }).detach();
    std::cin.ignore(std::numeric_limits<std::streamsize>::max());
}

}  // namespace bench
