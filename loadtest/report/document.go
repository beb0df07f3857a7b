package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// document writes the report's tables and plots into a section of a Markdown page: between "<!-- NAME: … -->" and the
// next "<!-- end -->". where is PAGE#NAME. The plots go to img/NAME beside the page.
func (r *Report) document(where string) error {
	path, name, _ := strings.Cut(where, "#")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(path), "img", name)
	if err := removePlots(dir); err != nil {
		return err
	}
	if err := r.writePlots(dir); err != nil {
		return err
	}
	text, err := replaceSection(string(page), name, r.markdown("img/"+name))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// removePlots removes plots of an earlier report that had more of them.
func removePlots(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	for _, path := range old {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// CheckDocument checks before any measurement that the document can be written.
func CheckDocument(where string) error {
	path, name, ok := strings.Cut(where, "#")
	if !ok || name == "" {
		return fmt.Errorf("--doc %q: it is PAGE#SECTION", where)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--doc: %w", err)
	}
	if _, err := replaceSection(string(page), name, ""); err != nil {
		return fmt.Errorf("--doc: %s: %w", path, err)
	}
	return nil
}

// markdown returns the report in Markdown.
func (r *Report) markdown(images string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; %s.\n", r.Machine, r.span())
	for _, c := range r.sections() {
		if c.title != "" {
			fmt.Fprintf(&b, "\n### %s\n\n%s.\n", c.title, strings.ToUpper(c.about[:min(1, len(c.about))])+
				c.about[min(1, len(c.about)):])
		}
		fmt.Fprintf(&b, "\n%s", c.table.markdown())
		for _, p := range c.Plots {
			fmt.Fprintf(&b, "\n![%s](%s/%s)\n", p.title, images, p.File)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", r.legend())
	return b.String()
}

// replaceSection replaces the text between the marks of a section.
func replaceSection(page, name, text string) (string, error) {
	before, rest, ok1 := strings.Cut(page, "<!-- "+name+":")
	mark, rest, ok2 := strings.Cut(rest, "-->")
	_, after, ok3 := strings.Cut(rest, "<!-- end -->")
	if !ok1 || !ok2 || !ok3 {
		return "", fmt.Errorf("there is no section between <!-- %s: … --> and <!-- end -->", name)
	}
	return before + "<!-- " + name + ":" + mark + "-->\n\n" + text + "\n<!-- end -->" + after, nil
}
