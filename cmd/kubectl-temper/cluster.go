package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/cluster/explain"
	"temper.dev/temper/internal/cluster/fleet"
)

// inCluster is set in each container of a cluster that has a service account.
const inCluster = "KUBERNETES_SERVICE_HOST"

// clusterFlags are kubectl's own, by which a user says which cluster, and as whom.
func clusterFlags() *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	flags.CacheDir = nil // nothing is cached
	return flags
}

// connect is the cluster that the flags or the user's kubeconfig name, and the namespace.
func connect(flags *genericclioptions.ConfigFlags) (client.Client, string, error) {
	config, err := restConfig(flags)
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", exit.New(exit.Config, "", "%w", err)
	}
	cluster, err := client.New(config, client.Options{Scheme: explain.Scheme()})
	return cluster, namespace, err
}

// restConfig is how that cluster is reached.
func restConfig(flags *genericclioptions.ConfigFlags) (*rest.Config, error) {
	const cure = "give --kubeconfig, or set KUBECONFIG"
	loader := flags.ToRawKubeConfigLoader()
	switch named, err := loader.RawConfig(); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, exit.New(exit.Config, cure, "there is no kubeconfig: %w", err)
	case err == nil && api.IsConfigEmpty(&named) && *flags.APIServer == "" && os.Getenv(inCluster) == "":
		// client-go would try localhost:8080.
		return nil, exit.New(exit.Config, cure, "no kubeconfig names a cluster%s", missing(loader.ConfigAccess().GetLoadingPrecedence()))
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, exit.New(exit.Config, "", "%w", err)
	}
	return config, nil
}

// missing lists those of the files that are not there: client-go reads the others, and says nothing.
func missing(files []string) string {
	files = slices.DeleteFunc(slices.Clone(files), func(name string) bool { _, err := os.Stat(name); return err == nil })
	if len(files) == 0 {
		return ""
	}
	return ": there is no file " + strings.Join(files, ", ")
}

// noReports is said where no agent has reported yet.
const noReports = "kubectl temper: no node's agent has reported yet"

// nodesOf are the nodes of these names, or all that have an agent or should; what cannot be shown is told the log.
func nodesOf(ctx context.Context, cluster client.Reader, names []string, now time.Time, log io.Writer) ([]fleet.Node, error) {
	nodes, hidden, err := fleet.All(ctx, cluster, names, now)
	if meta.IsNoMatchError(err) {
		return nil, exit.New(exit.Failed, "install Temper in it", "this cluster knows no TemperNode")
	}
	if hidden != nil {
		fmt.Fprintf(log, "kubectl temper: %v\n", hidden)
	}
	return nodes, err
}

// nodeNames completes the names of nodes that have an agent.
func nodeNames(flags *genericclioptions.ConfigFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		cluster, _, err := connect(flags)
		if err != nil { // completion has nobody to tell of errors
			return nil, cobra.ShellCompDirectiveError
		}
		nodes, err := fleet.Nodes(cmd.Context(), cluster, nil, time.Now())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name+"\t"+n.Rung)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
