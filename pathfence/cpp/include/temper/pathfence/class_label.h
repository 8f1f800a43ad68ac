// SPDX-License-Identifier: Apache-2.0
// What others than the core may see of a class, without the fence's lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace temper::pathfence {

// The edges that a class's requests use, at most eight, by a hash of each. Any thread may ask; whoever adds has the lock of
// the fence. A hash is written once, before the count includes it: add()'s release pairs with settled()'s acquire.
class EdgeSet {
public:
    static constexpr std::size_t kMost = 8;

    // Nothing would follow from telling the core of this edge again, or for a ninth time of another.
    bool settled(const std::string& edge) const;
    void add(const std::string& edge);

private:
    std::array<std::uint64_t, kMost> hashes_{};
    std::atomic<std::size_t> count_{0};
};

struct ClassLabel {
    std::string name;
    EdgeSet edges;  // none of a bucket's, whose requests' edges are learned by key
};

}  // namespace temper::pathfence
