package explain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"temper.dev/temper/api/v1alpha1"
)

// extensions are those of manifests in a folder.
var extensions = []string{".yaml", ".yml", ".json"}

// scheme has the kinds that matter to tiers.
var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, schedulingv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}()

// decoder is strict: a misspelt field would be taken for one that was left out.
var decoder = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

// ReadPath reads a file, or all manifests in a folder and below it.
func (m *Manifests) ReadPath(name string) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	return filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path != name && !slices.Contains(extensions, filepath.Ext(path)) {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		return m.Read(path, file)
	})
}

// Read adds what a file holds, YAML or JSON, of one document or several. Errors count its documents from 1.
func (m *Manifests) Read(name string, file io.Reader) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(file))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = m.readDocument(document)
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", name, n, err)
		}
	}
}

// What a YAML parser would end at, and leave the rest unread.
var endOfDocument = regexp.MustCompile(`(?m)^\.\.\.\s*$`)

func (m *Manifests) readDocument(document []byte) error {
	if bytes.IndexByte(document, 0) >= 0 {
		return errors.New("it is not text in UTF-8")
	}
	if end := endOfDocument.FindIndex(document); end != nil && len(bytes.TrimSpace(document[end[1]:])) > 0 {
		return errors.New("something follows after '...'; separate documents with '---'")
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	if string(text) == "null" { // comments alone
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("it is no Kubernetes object: %w", err)
	}
	return m.add(object)
}

// add takes an object, or each in a list of them.
func (m *Manifests) add(object map[string]any) error {
	kind, _ := object["kind"].(string)
	items, isList := object["items"].([]any)
	if !isList || !strings.HasSuffix(kind, "List") {
		return m.decode(object)
	}
	for i, item := range items {
		inner, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("items[%d] is no object", i)
		}
		if inner["kind"] == nil && kind != "List" { // as in the API server's own lists
			inner["kind"], inner["apiVersion"] = strings.TrimSuffix(kind, "List"), object["apiVersion"]
		}
		if err := m.add(inner); err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	return nil
}

func (m *Manifests) decode(object map[string]any) error {
	// What the cluster adds may be newer than this program, and says nothing about tiers.
	delete(object, "status")
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	decoded, kind, err := decoder.Decode(text, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		if kind.Group == v1alpha1.GroupVersion.Group {
			return fmt.Errorf("%s of %s is not known; Temper has TierPolicy of %s", kind.Kind, kind.GroupVersion(), v1alpha1.GroupVersion)
		}
		m.leaveAlone(kind.GroupVersion().String() + " " + kind.Kind)
		return nil
	}
	if err != nil {
		return err
	}
	return m.take(decoded, kind.Kind)
}
