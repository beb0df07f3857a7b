package console

import "time"

// SetWriteTime changes how long a browser may take to receive a part.
func (c *Console) SetWriteTime(d time.Duration) { c.live.writeTime = d }

// Streams is the number of streams that are open.
func (c *Console) Streams() int { return len(c.live.slots) }
