// Package manifest reads the objects that Kubernetes manifests hold: files and folders, YAML and JSON, lists and their items.
package manifest

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

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// extensions are those of manifests in a folder.
var extensions = []string{".yaml", ".yml", ".json"}

// Take is called with each object. Its error ends the reading.
type Take func(object map[string]any) error

// ReadPath reads a file, or all manifests in a folder and below it.
func ReadPath(name string, take Take) error {
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
		return Read(path, file, take)
	})
}

// Read reads what a file holds, of one document or several. Errors count its documents from 1.
func Read(name string, file io.Reader, take Take) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(file))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = readDocument(document, take)
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", name, n, err)
		}
	}
}

// What a YAML parser would end at, and leave the rest unread.
var endOfDocument = regexp.MustCompile(`(?m)^\.\.\.\s*$`)

func readDocument(document []byte, take Take) error {
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
	return add(object, take)
}

// add takes an object, or each in a list of them.
func add(object map[string]any, take Take) error {
	kind, _ := object["kind"].(string)
	items, isList := object["items"].([]any)
	if !isList || !strings.HasSuffix(kind, "List") {
		return take(object)
	}
	for i, item := range items {
		inner, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("items[%d] is no object", i)
		}
		if inner["kind"] == nil && kind != "List" { // as in the API server's own lists
			inner["kind"], inner["apiVersion"] = strings.TrimSuffix(kind, "List"), object["apiVersion"]
		}
		if err := add(inner, take); err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	return nil
}
