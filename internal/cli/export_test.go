package cli

// For tests outside of the package, which have a fleet of fleettest.
var Shipped = shipped
