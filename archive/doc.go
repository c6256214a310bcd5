// Package archive writes the jobs of a localqueue directory as JSON Lines, and reads them back: to move them to another
// directory or machine, to look at them with other tools, and as the bridge from and to other queues.
//
// An export is a text of one JSON object per line, in UTF-8. The first line is a header:
//
//	{"localqueue_export":1,"export":"ID","source":"ID","created_at":"...","queue":null,"first_id":1,"last_id":17,"queues":[{"queue":"default","paused":false,"keep_acked_ms":null}]}
//
// then comes one line per job, by rising id, each as it was when its page was read:
//
//	{"id":17,"queue":"default","state":"ready","reason":null,"job_id":null,"unique_while_pending":false,"priority":0,"attempts":0,
//	 "max_attempts":4,"delivery":0,"available_at":"2026-07-01T12:00:00.000Z","lease_until":null,"receipt":null,"claimed_at":null,"claimed_by":null,
//	 "created_at":"2026-07-01T12:00:00.000Z","updated_at":"2026-07-01T12:00:00.000Z","last_error":null,"headers":{},"text":"hello","history":[]}
//
// (on one line), and the last one says that nothing is missing:
//
//	{"localqueue_export_end":1,"jobs":1}
//
// In the header, export is this export's own name, and source tells the file it was made of from all others. The
// payload's exact bytes are in text if they are UTF-8, else in base64. history holds the failed deliveries, with the
// fields delivery, attempt, start, end, outcome, error, worker. Instants are RFC 3339 in UTC, to the millisecond. Fields
// that a reader doesn't know are to be ignored; a change that must not be ignored gets another version number. A name
// that is known but for its case is refused, and so is one that is there twice in an object.
//
// Lines from elsewhere need no header and no more than a payload: {"payload":VALUE} takes the bytes of the JSON value as
// they are written, {"text":"..."} and {"base64":"..."} any bytes; payload beside one of these must be the same value.
// Every other field of a job may be given too; id, receipt and what is unknown count for nothing. Such an import has to
// be given a name (see [ImportOptions]).
package archive
