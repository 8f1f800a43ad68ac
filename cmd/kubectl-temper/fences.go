package main

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/cluster/fences"
	"temper.dev/temper/internal/path/fencetop"
)

func newFencesCommand() *cobra.Command {
	flags := clusterFlags()
	var options fencetop.Options
	var source fences.Source
	cmd := &cobra.Command{
		Use:   "fences SERVICE...",
		Short: "Watch what PathFence does in the pods of services",
		Long: `Show what the fence of each pod behind these Services does, class by class, as 'pathfence top' does of services that
this machine reaches. Nothing of Temper has to be in the cluster, but the services have to show their fence's state: at
/actuator/pathfence with PathFence's Spring Boot starter, in Go where the service has put its StateHandler (--path).

The pods are those of the Service's EndpointSlices, ready or not, found anew with each look. They are asked through the
API server: that takes the right to get services and pods/proxy, and to list endpointslices, in the namespace; completion
lists services. --port is for Services with several ports, and for a management port that no Service has. Of many pods 16
are asked at a time, each for 2 s at most.

On a terminal the tables are drawn anew each time; elsewhere they follow each other. A pod that cannot be asked keeps its
place, with the reason. --once prints counts since the pods' start, and fails if one cannot be asked. --json prints one
object a pod, a look a line.

` + fencetop.Columns,
		Example: `  kubectl temper fences orders -n shop
  kubectl temper fences orders cart --port 8081 --every 5s
  kubectl temper fences orders --once --json | jq '.[] | {pod: .target, off: .state.off, waiting: .state.waiting}'`,
		Args: cli.AtLeast("SERVICE"),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			err := reach(&source, flags)
			var names []string
			if err == nil {
				names, err = source.Names(cmd.Context())
			}
			if err != nil { // completion has nobody to tell of errors
				return nil, cobra.ShellCompDirectiveError
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, services []string) error {
			if err := options.Check(); err != nil {
				return err
			}
			if !strings.HasPrefix(source.Path, "/") {
				return exit.New(exit.Usage, "begin it with /", "--path %q is no path", source.Path)
			}
			if err := reach(&source, flags); err != nil {
				return err
			}
			source.Services = services
			if err := source.Check(cmd.Context()); err != nil {
				return exit.New(exit.Failed, "", "%w", err)
			}
			return options.Show(cmd, source.Round)
		},
	}
	options.AddFlags(cmd)
	cmd.Flags().StringVar(&source.Port, "port", "", "port that is asked, by number, or by the name that the Service has for it (default: the Service's only one)")
	cmd.Flags().StringVar(&source.Path, "path", "/actuator/pathfence", "where the state is")
	cmd.Flags().BoolVar(&source.HTTPS, "https", false, "the port speaks HTTPS; its certificate is not verified")
	flags.AddFlags(cmd.Flags())
	return cmd
}

// reach fills in the cluster that the flags name, and the namespace.
func reach(source *fences.Source, flags *genericclioptions.ConfigFlags) error {
	config, err := restConfig(flags)
	if err != nil {
		return err
	}
	config.QPS = -1 // all pods at a time; the API server knows how to bound that
	if source.Namespace, _, err = flags.ToRawKubeConfigLoader().Namespace(); err != nil {
		return exit.New(exit.Config, "", "%w", err)
	}
	source.Clients, err = kubernetes.NewForConfig(config)
	return err
}
