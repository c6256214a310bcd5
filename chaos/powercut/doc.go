// Package powercut rebuilds what a power cut can leave of a queue's directory, and holds it against what was promised.
//
// Two processes put, claim and settle jobs on one queue, with chaos/preload between SQLite and libc. Each writes a note into the
// record of system calls before an operation and when it has its answer. A Disk follows the record, and at chosen moments makes
// an Image: what was synced, and of what was not any part, in any order, torn at sectors, sizes and names included. Each image is
// opened, checked in full, and its jobs compared with the notes (Story): what docs/guarantees.md says of the durability.
//
// What the model takes for granted is what SQLite does: a sector that isn't written doesn't change, a sync keeps what it
// says, and a directory keeps its changes in their order.
//
//	go test ./chaos/powercut        # 40 images by chance and 40 after answers for each durability, first opens, migrations
//	make powercut IMAGES=500        # more of them
//
// A failure keeps its record and says how to make the same images again.
package powercut
