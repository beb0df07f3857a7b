// Package console is a web page for operators: what the fleet does, its workers, dead letters, schedules and owners,
// and actions on them. It uses the control endpoints of the fleet, and stores nothing.
//
// Pages are rendered here, with html/template, from what the fleet answers to one request: lists are cut to a page, and
// all filters are in the URL. A page that changes by itself gets parts of itself, rendered here too, by server-sent
// events. Texts of owners and publishers are hostile: only html/template writes them.
package console
