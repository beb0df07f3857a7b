// Package mutants has a test that takes single checks out of Pinwheel, and shows that another test notices. It has the
// tag mutants.
package mutants
