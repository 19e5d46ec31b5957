package queue

import "sync"

// laneSet runs messages of one lane in order and lanes side by side. A lane's
// goroutine lives only while it has messages.
type laneSet struct {
	mu      sync.Mutex
	waiting map[string][]Message
	running sync.WaitGroup
}

func (l *laneSet) add(lane string, m Message, handle func(Message), idle func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = make(map[string][]Message)
	}
	queue, busy := l.waiting[lane]
	l.waiting[lane] = append(queue, m)
	if !busy {
		l.running.Go(func() { l.run(lane, handle, idle) })
	}
}

func (l *laneSet) run(lane string, handle func(Message), idle func()) {
	for {
		m, ok := l.next(lane)
		if !ok {
			return
		}
		handle(m)
		if l.empty(lane) {
			idle()
		}
	}
}

func (l *laneSet) next(lane string) (Message, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.waiting[lane]
	if len(queue) == 0 {
		delete(l.waiting, lane)
		return Message{}, false
	}
	l.waiting[lane] = queue[1:]
	return queue[0], true
}

func (l *laneSet) empty(lane string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting[lane]) == 0
}

// beside runs work next to the lanes; wait waits for it too.
func (l *laneSet) beside(work func()) { l.running.Go(work) }

func (l *laneSet) wait() { l.running.Wait() }

// heldMessages are those received and not yet deleted or abandoned.
type heldMessages struct {
	mu       sync.Mutex
	messages map[string]Message
}

func (h *heldMessages) add(m Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.messages == nil {
		h.messages = make(map[string]Message)
	}
	h.messages[m.ReceiptHandle] = m
}

func (h *heldMessages) remove(m Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.messages, m.ReceiptHandle)
}

func (h *heldMessages) all() []Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	messages := make([]Message, 0, len(h.messages))
	for _, m := range h.messages {
		messages = append(messages, m)
	}
	return messages
}
