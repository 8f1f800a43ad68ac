package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/exit"
	"temper.dev/temper/internal/explain"
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
	loader := flags.ToRawKubeConfigLoader()
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", exit.New(exit.Config, "", "%w", err)
	}
	if named, err := loader.RawConfig(); err == nil && api.IsConfigEmpty(&named) && *flags.APIServer == "" && os.Getenv(inCluster) == "" {
		// client-go would try localhost:8080.
		return nil, "", exit.New(exit.Config, "give --kubeconfig, or manifests with -f", "no kubeconfig names a cluster")
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, "", exit.New(exit.Config, "", "%w", err)
	}
	cluster, err := client.New(config, client.Options{Scheme: explain.Scheme()})
	return cluster, namespace, err
}
