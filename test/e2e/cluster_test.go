//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Addresses of scripts/e2e.sh.
const (
	hostIP = "10.99.0.1"
	nodeIP = "10.0.2.15"
)

const start = 2 * time.Minute // for what starts on a host that has other things to do, too

// controlPlane is a cluster without nodes: etcd, API server, scheduler, controllers.
type controlPlane struct {
	*envtest.Environment
	dir        string // for files of its own
	kubeconfig string // file, for whoever may do everything
	programs   []*program
}

// startControlPlane starts what is in the folder of programs.
func startControlPlane(programs, dir string) (*controlPlane, error) {
	c := &controlPlane{Environment: &envtest.Environment{ControlPlaneStartTimeout: start}, dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	c.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(programs, "etcd"), DataDir: filepath.Join(dir, "etcd.d"), StartTimeout: start}
	if err := os.Mkdir(filepath.Join(dir, "etcd.d"), 0o700); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	api := c.ControlPlane.GetAPIServer()
	api.Path = filepath.Join(programs, "kube-apiserver")
	api.CertDir = dir
	if api.Err, err = os.Create(filepath.Join(dir, "kube-apiserver.log")); err != nil {
		return nil, err
	}
	api.SecureServing.ListenAddr.Address, api.SecureServing.ListenAddr.Port = hostIP, strconv.Itoa(port)
	api.Configure().Disable("disable-admission-plugins"). // envtest's, of what a real cluster has
								Set("enable-admission-plugins", "NodeRestriction").
								Set("authorization-mode", "Node", "RBAC").
								Set("kubelet-preferred-address-types", "InternalIP")
	if _, err := c.Start(); err != nil {
		return nil, fmt.Errorf("the API server does not start; 'make kubernetes-node' builds it: %w", err)
	}
	return c, errors.Join(c.write("kubeconfig", c.KubeConfig), c.startControllers(programs))
}

func (c *controlPlane) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(c.dir, name), data, 0o600)
}

func (c *controlPlane) startControllers(programs string) error {
	api := c.ControlPlane.GetAPIServer()
	if err := c.write("api-ca.crt", api.SecureServing.CA); err != nil {
		return err
	}
	configuration := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\n" +
		"clientConnection: {kubeconfig: " + c.kubeconfig + "}\n"
	if err := c.write("scheduler.yaml", []byte(configuration)); err != nil {
		return err
	}
	// A second of a busy node takes up to twelve of the host's: its kubelet, which renews its lease every ten, is not late by that.
	for name, args := range map[string][]string{
		"kube-scheduler": {"--config", filepath.Join(c.dir, "scheduler.yaml"), "--secure-port=0"},
		"kube-controller-manager": {"--kubeconfig", c.kubeconfig, "--leader-elect=false", "--secure-port=0", "--node-monitor-grace-period=10m",
			"--service-account-private-key-file", filepath.Join(c.dir, "sa-signer.key"), "--root-ca-file", filepath.Join(c.dir, "api-ca.crt")},
	} {
		p, err := launch(filepath.Join(c.dir, name+".log"), exec.Command(filepath.Join(programs, name), args...))
		if err != nil {
			return err
		}
		c.programs = append(c.programs, p)
	}
	return nil
}

// node makes a kubeconfig for the kubelet of a node.
func (c *controlPlane) node(name string) ([]byte, error) {
	user, err := c.AddUser(envtest.User{Name: "system:node:" + name, Groups: []string{"system:nodes"}}, nil)
	if err != nil {
		return nil, err
	}
	return user.KubeConfig()
}

func (c *controlPlane) stop() {
	for _, p := range c.programs {
		p.end()
	}
	_ = c.Stop() // the namespace ends with the test
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", hostIP+":0")
	if err != nil {
		return 0, fmt.Errorf("no address %s: run it by scripts/e2e.sh: %w", hostIP, err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// program is one that runs beside the test.
type program struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// launch starts a program that does not outlive the test, and keeps what it says in a file.
func launch(log string, cmd *exec.Cmd) (*program, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &program{cmd: cmd, ended: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait(); close(p.ended) }()
	return p, nil
}

func (p *program) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// build runs a program that makes something.
func build(ctx context.Context, dir, name string, args ...string) error {
	ctx, stop := context.WithTimeout(ctx, mostBuild)
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, out)
	}
	return nil
}
