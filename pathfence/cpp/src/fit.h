// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the knee. algorithm.md: "Limit", fit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace temper::pathfence {

// In flight, in thousandths, and goodput.
struct ScatterPoint {
    std::int64_t n, good;
};
using Scatter = std::vector<ScatterPoint>;

struct Knee {
    std::int64_t at;
    bool rising;  // no plateau shows
};

// Whether the points differ enough in concurrency to tell anything.
inline bool spread(const Scatter& s) {
    std::int64_t low = s[0].n, high = s[0].n, sum = 0;
    for (const auto& p : s) {
        low = std::min(low, p.n);
        high = std::max(high, p.n);
        sum += p.n;
    }
    return (high - low) * 4 * static_cast<std::int64_t>(s.size()) > sum;
}

// Whether goodput falls as concurrency rises: a correlation below -1/2.
inline bool falling(const Scatter& s) {
    const auto count = static_cast<std::int64_t>(s.size());
    std::int64_t n = 0, g = 0;
    for (const auto& p : s) {
        n += p.n;
        g += p.good;
    }
    n /= count;
    g /= count;
    const std::int64_t scale_n = std::max<std::int64_t>(1, n / 100), scale_g = std::max<std::int64_t>(1, g / 100);
    std::int64_t cov = 0, var_n = 0, var_g = 0;
    for (const auto& p : s) {
        const std::int64_t a = (p.n - n) / scale_n, b = (p.good - g) / scale_g;
        cov += a * b;
        var_n += a * a;
        var_g += b * b;
    }
    return cov < 0 && var_n > 0 && cov * cov / var_n * 4 > var_g;
}

// Fits goodput = P min(n/k, 1).
inline Knee knee(const Scatter& s) {
    std::int64_t top = 0, scale = 1;
    for (const auto& p : s) {
        top = std::max(top, p.n);
        scale = std::max(scale, p.good / 10'000);
    }
    const std::int64_t last = (top + 999) / 1000;
    std::int64_t best = 0, least = -1;
    for (std::int64_t k = 1; k <= last; ++k) {
        std::int64_t yx = 0, xx = 0, error = 0;
        for (const auto& p : s) {
            const std::int64_t x = std::min<std::int64_t>(p.n / k, 1000);
            yx += p.good / scale * x;
            xx += x * x;
        }
        for (const auto& p : s) {
            const std::int64_t e = p.good / scale - yx * std::min<std::int64_t>(p.n / k, 1000) / xx;
            error += e * e;
        }
        if (least < 0 || error < least) {
            least = error;
            best = k;
        }
    }
    return {best, best == last};
}

}  // namespace temper::pathfence
