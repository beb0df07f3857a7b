// Package report holds what loadtest measured, and shows it: as JSON, on the terminal, as an HTML page, as pictures, or
// in a section of a Markdown page. It compares two reports, too. It measures nothing.
package report
