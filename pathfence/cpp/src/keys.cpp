// SPDX-License-Identifier: Apache-2.0
// From a key to a class. algorithm.md: "Classes".
#include <cstdio>
#include <cstring>

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

// No edge has such a name.
std::string own_footprint(const std::string& key) { return "=" + key; }

std::string joined(const std::set<std::string>& footprint, char with) {
    std::string all;
    for (const std::string& one : footprint) all += (all.empty() ? "" : std::string(1, with)) + one;
    return all;
}

// What the class of a footprint is called: by that, so that it has the same name in each process of a service, and after each
// start. Where that is too long, or an edge has a + itself, a hash tells it apart.
std::string learned_name(const std::set<std::string>& footprint) {
    const std::string all = joined(footprint, '+');
    if (all.empty()) return "~rest";
    const bool own = all.front() == '=';
    const std::string name = own ? "~key:" + all.substr(1) : "~calls:" + all;
    const auto plus = static_cast<std::size_t>(std::count(all.begin(), all.end(), '+'));
    if (name.size() <= kMaxName && (own || plus + 1 == footprint.size())) return name;
    char hash[10];
    std::snprintf(hash, sizeof hash, "~%08x", static_cast<unsigned>(fnv1a(joined(footprint, ',')) & 0xffffffff));
    return name.substr(0, kMaxName - std::strlen(hash)) + hash;
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

Core::Class& Core::class_of(const std::string& key) const {
    if (const auto c = configured_.find(key); c != configured_.end()) return *c->second;
    if (!valid_name(key)) return *classes_[0];
    if (const auto k = learned_.find(key); k != learned_.end()) return *k->second->of;
    return *classes_[fnv1a(key) % static_cast<std::uint64_t>(buckets_)];
}

// The keys that are known to be of each class, the first by name.
std::map<const Core::Class*, std::vector<std::string>> Core::shown_keys() const {
    constexpr std::size_t kMost = 16;
    std::set<std::string> all;
    for (const auto& k : configured_) all.insert(k.first);
    for (const auto& k : learned_) all.insert(k.first);
    for (const auto& k : candidates_)
        if (k) all.insert(k->key);
    std::map<const Class*, std::vector<std::string>> of;
    for (const auto& key : all)
        if (auto& keys = of[&class_of(key)]; keys.size() < kMost) keys.push_back(key);
    return of;
}

std::unique_ptr<Core::Candidate>& Core::slot(const std::string& key) { return candidates_[(fnv1a(key) >> 8) % kMaxKeys]; }

// The entry in which the edges of a key are collected, or null where the key has none.
Core::Candidate* Core::candidate_for(const std::string& key) {
    if (configured_.count(key) || !valid_name(key)) return nullptr;
    if (const auto k = learned_.find(key); k != learned_.end()) return k->second.get();
    auto& s = slot(key);
    if (!s || (s->key != key && now_ - s->touched >= kCandidateLife)) s = std::make_unique<Candidate>(Candidate{key, {}, 0, now_, nullptr});
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
    if (learned_.count(r.key) && !adopt(*k)) k->edges.erase(edge);
    return decisions_;
}

// Counts a completion of a key that has no class yet.
void Core::learn_key(const std::string& key) {
    if (learned_.count(key)) return;
    Candidate* k = candidate_for(key);
    if (!k) return;
    k->touched = now_;
    if (++k->quiet >= kLearnAfter && learned_.size() < kMaxKeys && adopt(*k)) learned_[key] = std::move(slot(key));
}

std::size_t Core::learned_classes() const {
    return static_cast<std::size_t>(std::count_if(classes_.begin(), classes_.end(), [](const auto& c) { return c->learned; }));
}

// What keys of one class have in common: their edges. A key without edges has nothing in common with any other, so it has a
// class of its own; but the last one that may be learned is for all such that come later.
std::set<std::string> Core::footprint(const Candidate& k) const {
    if (!k.edges.empty()) return k.edges;
    const std::set<std::string> own = {own_footprint(k.key)};
    if (footprints_.count(own) || learned_classes() < kMaxLearned - 1) return own;
    return {};
}

// Makes sure that there is a class for a candidate.
bool Core::adopt(Candidate& k) {
    const std::set<std::string> wanted = footprint(k);
    if (const auto known = footprints_.find(wanted); known != footprints_.end()) {
        k.of = known->second;
        return true;
    }
    if (auto own = footprints_.extract({own_footprint(k.key)})) {  // what was its own goes with it
        k.of = own.mapped();
        for (const std::string& edge : k.edges) uses(*k.of, edge);
        own.key() = wanted;
        footprints_.insert(std::move(own));
        return true;
    }
    const std::string name = learned_name(wanted);
    if (learned_classes() == kMaxLearned || named(name)) return false;
    ClassConfig config;
    config.name = name;
    config.weight = kDefaultWeight;
    config.target = config_.target;
    Class& c = add_class(config);
    c.learned = true;
    for (const std::string& edge : k.edges) c.add_edge(edge);
    footprints_.emplace(wanted, &c);
    k.of = &c;
    share_out();
    return true;
}

}  // namespace temper::pathfence
