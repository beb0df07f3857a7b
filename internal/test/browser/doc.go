// Package browser has tests that use workers with Chromium, as people do. They need the tag browser, npm and Chromium.
package browser
