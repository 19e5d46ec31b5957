package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// hook puts AWS IoT Core's rules into the broker library. A packet that must not pass is refused
// when it is read, by ending the connection: refused later, the library would answer a QoS 1
// publish with silence and keep the connection, and its publisher would wait for ever.
type hook struct {
	mqtt.HookBase
	ctx    context.Context
	cfg    Config
	server *mqtt.Server

	mu      sync.Mutex
	clients map[*mqtt.Client]string
}

func newHook(ctx context.Context, cfg Config, server *mqtt.Server) *hook {
	return &hook{ctx: ctx, cfg: cfg, server: server, clients: make(map[*mqtt.Client]string)}
}

// ID names the hook.
func (h *hook) ID() string { return "aws-iot-core-rules" }

// Provides reports which of the library's events the hook handles.
func (h *hook) Provides(event byte) bool {
	switch event {
	case mqtt.OnConnectAuthenticate, mqtt.OnACLCheck, mqtt.OnPacketRead, mqtt.OnPublish, mqtt.OnDisconnect:
		return true
	}
	return false
}

// OnConnectAuthenticate admits a client by its certificate, whose common name is its identity. A
// client id is its first holder's: another identity cannot take the connection over.
func (h *hook) OnConnectAuthenticate(cl *mqtt.Client, pk packets.Packet) bool {
	identity, err := commonName(cl)
	if err == nil {
		err = checkConnect(pk)
	}
	if err == nil {
		err = h.claim(cl, identity)
	}
	if err != nil {
		h.refuse(cl, fmt.Errorf("connect: %w", err))
		return false
	}
	h.cfg.Log.Info("connected", "identity", identity, "client", cl.ID)
	return true
}

// OnACLCheck allows what OnPacketRead let through: it alone decides.
func (h *hook) OnACLCheck(*mqtt.Client, string, bool) bool { return true }

// OnPacketRead refuses publishes and subscriptions beyond the limits or the client's policy.
func (h *hook) OnPacketRead(cl *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	var err error
	switch pk.FixedHeader.Type {
	case packets.Publish:
		err = checkPublish(policyFor(h.identity(cl)), pk)
	case packets.Subscribe:
		err = checkSubscribe(policyFor(h.identity(cl)), pk, cl.State.Subscriptions.Len())
	}
	if err != nil {
		h.refuse(cl, err)
		h.disconnect(cl, reason(err))
		return pk, packets.ErrRejectPacket
	}
	return pk, nil
}

// OnPublish hands the message over before it is acknowledged.
func (h *hook) OnPublish(cl *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	err := h.cfg.Handle(h.ctx, Message{Topic: pk.TopicName, Payload: pk.Payload, ClientID: cl.ID})
	if err != nil {
		h.cfg.Log.Error("message not taken over, client disconnected",
			"client", cl.ID, "topic", pk.TopicName, "bytes", len(pk.Payload), "error", err)
		h.disconnect(cl, packets.ErrImplementationSpecificError)
		return pk, packets.ErrRejectPacket
	}
	return pk, nil
}

// OnDisconnect forgets the client.
func (h *hook) OnDisconnect(cl *mqtt.Client, _ error, _ bool) {
	h.mu.Lock()
	identity := h.clients[cl]
	delete(h.clients, cl)
	h.mu.Unlock()
	h.cfg.Log.Info("disconnected", "identity", identity, "client", cl.ID)
}

func (h *hook) claim(cl *mqtt.Client, identity string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for other, holder := range h.clients {
		if other.Closed() {
			// Its connection ended before its session began, so no OnDisconnect came.
			delete(h.clients, other)
			continue
		}
		if other.ID == cl.ID && holder != identity {
			return fmt.Errorf("client id %q is in use by another identity: %w", cl.ID, errDenied)
		}
	}
	h.clients[cl] = identity
	return nil
}

func (h *hook) identity(cl *mqtt.Client) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clients[cl]
}

func (h *hook) refuse(cl *mqtt.Client, err error) {
	h.cfg.Log.Warn("refused", "client", cl.ID, "remote", cl.Net.Remote, "error", err)
	if h.cfg.Refused != nil {
		h.cfg.Refused(err)
	}
}

// disconnect ends the connection. MQTT 5 knows a packet that says why; 3.1.1 has none.
func (h *hook) disconnect(cl *mqtt.Client, code packets.Code) {
	if cl.Properties.ProtocolVersion == 5 {
		// It always returns the code it was given.
		_ = h.server.DisconnectClient(cl, code)
		return
	}
	cl.Stop(code)
}

func reason(err error) packets.Code {
	if errors.Is(err, errDenied) {
		return packets.ErrNotAuthorized
	}
	return packets.ErrQuotaExceeded
}

func commonName(cl *mqtt.Client) (string, error) {
	conn, ok := cl.Net.Conn.(*tls.Conn)
	if !ok {
		return "", errors.New("connection is not TLS")
	}
	certs := conn.ConnectionState().PeerCertificates
	if len(certs) == 0 || certs[0].Subject.CommonName == "" {
		return "", errors.New("no client certificate with a common name")
	}
	return certs[0].Subject.CommonName, nil
}
