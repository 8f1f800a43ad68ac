// SPDX-License-Identifier: Apache-2.0
// From a key to a class. algorithm.md: "Classes".
#include "class.h"

namespace temper::pathfence {
namespace {

constexpr std::int64_t kLearnAfter = 8;
constexpr Time kCandidateLife = 1000 * kMillisecond;

std::uint64_t fnv1a(const std::string& s) {
    std::uint64_t h = 14695981039346656037ULL;
    for (const char c : s) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    return h;
}

}  // namespace

bool EdgeSet::settled(const std::string& edge) const {
    const std::size_t count = count_.load(std::memory_order_acquire);
    if (count == kMost) return true;
    const auto end = hashes_.begin() + static_cast<std::ptrdiff_t>(count);
    return count > 0 && std::find(hashes_.begin(), end, fnv1a(edge)) != end;
}

void EdgeSet::add(const std::string& edge) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    hashes_[count] = fnv1a(edge);
    count_.store(count + 1, std::memory_order_release);
}

Core::Class& Core::class_of(const std::string& key) {
    if (const auto c = configured_.find(key); c != configured_.end()) return *c->second;
    if (!valid_name(key)) return *classes_[0];
    if (const auto k = learned_.find(key); k != learned_.end())
        for (const auto& [edges, c] : footprints_)
            if (edges == k->second->edges) return *c;
    return *classes_[fnv1a(key) % static_cast<std::uint64_t>(buckets_)];
}

std::unique_ptr<Core::Candidate>& Core::slot(const std::string& key) { return candidates_[(fnv1a(key) >> 8) % kMaxKeys]; }

// The entry in which the edges of a key are collected, or null where the key has none.
Core::Candidate* Core::candidate_for(const std::string& key) {
    if (configured_.count(key) || !valid_name(key)) return nullptr;
    if (const auto k = learned_.find(key); k != learned_.end()) return k->second.get();
    auto& s = slot(key);
    if (!s || (s->key != key && now_ - s->touched >= kCandidateLife)) s = std::make_unique<Candidate>(Candidate{key, {}, 0, now_});
    return s->key == key ? s.get() : nullptr;
}

const Core::Decisions& Core::edge(Time now, std::int64_t id, const std::string& edge) {
    begin(now);
    const Request* part = running(id);
    if (!part || !valid_name(edge)) return decisions_;
    const Request& r = part->parent ? *part->parent : *part;
    if (const auto c = configured_.find(r.key); c != configured_.end()) {
        uses(*c->second, edge);
        return decisions_;
    }
    Candidate* k = candidate_for(r.key);
    if (!k || k->edges.size() >= kMaxEdges || !k->edges.insert(edge).second) return decisions_;
    k->quiet = 0;
    // Where no class is left for the larger set, the key stays where it is.
    if (learned_.count(r.key) && !adopt(k->edges)) k->edges.erase(edge);
    return decisions_;
}

// Counts a completion of a key that has no class yet.
void Core::learn_key(const std::string& key) {
    if (learned_.count(key)) return;
    Candidate* k = candidate_for(key);
    if (!k) return;
    k->touched = now_;
    if (++k->quiet >= kLearnAfter && learned_.size() < kMaxKeys && adopt(k->edges)) learned_[key] = std::move(slot(key));
}

// Makes sure that there is a class for these edges.
bool Core::adopt(const std::set<std::string>& edges) {
    for (const auto& f : footprints_)
        if (f.first == edges) return true;
    if (classes_.size() == static_cast<std::size_t>(buckets_) + kMaxClasses) return false;
    ClassConfig k;
    k.name = "~" + std::to_string(static_cast<std::int64_t>(classes_.size()) - buckets_);
    k.weight = kDefaultWeight;
    k.target = config_.target;
    Class& c = add_class(k);
    for (const std::string& edge : edges) c.add_edge(edge);
    footprints_.emplace_back(edges, &c);
    share_out();
    return true;
}

}  // namespace temper::pathfence
