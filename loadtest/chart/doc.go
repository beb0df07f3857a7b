// Package chart draws lines and bars as SVG.
package chart
