// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.ConfigException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Has Spring say in two lines, not in two hundred, what is wrong with classes or with the configuration's file. */
final class ConfigFailure extends AbstractFailureAnalyzer<ConfigException> {
    @Override
    protected FailureAnalysis analyze(Throwable failure, ConfigException cause) {
        return new FailureAnalysis(
                "PathFence's configuration is wrong: " + cause.getMessage(),
                "Correct it where it says, in pathfence.classes, or in the file that pathfence.config or PATHFENCE_CONFIG names. What each"
                        + " means is in the description of pathfence.* and in PathFence's algorithm.md, \"Configuration\".",
                cause);
    }
}
