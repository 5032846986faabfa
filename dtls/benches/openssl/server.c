/* What would a server on OpenSSL take, if it kept many DTLS sessions on one socket?
 *
 * `server PORT KEY`: answers each record with its content, over DTLS 1.2 with a stateless cookie and
 * the pre-shared key KEY (hex), PSK-AES128-CCM8. OpenSSL has no program that holds more than one
 * session. This one is in one thread, finds a session by the address of its peer, and hands OpenSSL
 * one datagram at a time. It does not resume sessions. An idle session gives back its buffers of
 * records; OpenSSL keeps that of its handshake, to repeat what was lost. */

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BUCKETS = 1 << 16, DATAGRAM_MAX = 2048, MTU = 1400 };

typedef struct Session {
    struct Session *next;
    struct sockaddr_in peer;
    SSL *ssl;
} Session;

static SSL_CTX *context;
static BIO_METHOD *method;
static int udp;
static Session *buckets[BUCKETS];
static unsigned char key[64], cookie_secret[32];
static long key_length;

/* The datagram that OpenSSL reads next. */
static char datagram[DATAGRAM_MAX];
static ssize_t datagram_length;

static void must(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s failed\n", what);
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

static int read_datagram(BIO *bio, char *out, int room) {
    BIO_clear_retry_flags(bio);
    if (datagram_length <= 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    int length = datagram_length < room ? (int)datagram_length : room;
    memcpy(out, datagram, length);
    datagram_length = 0;
    return length;
}

static int write_datagram(BIO *bio, const char *bytes, int length) {
    Session *session = BIO_get_data(bio);
    struct sockaddr *peer = (struct sockaddr *)&session->peer;
    return (int)sendto(udp, bytes, length, 0, peer, sizeof session->peer);
}

static long control(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static Session *new_session(void) {
    Session *session = calloc(1, sizeof *session);
    BIO *bio = BIO_new(method);
    must(session && bio, "memory");
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    session->ssl = SSL_new(context);
    must(session->ssl != NULL, "SSL_new");
    SSL_set_bio(session->ssl, bio, bio);
    SSL_set_accept_state(session->ssl);
    SSL_set_mtu(session->ssl, MTU);
    return session;
}

static Session **bucket_of(const struct sockaddr_in *peer) {
    uint32_t address = ntohl(peer->sin_addr.s_addr) * 2654435761u;
    return &buckets[((address >> 16) ^ peer->sin_port) % BUCKETS];
}

static Session *find(const struct sockaddr_in *peer) {
    Session *session = *bucket_of(peer);
    while (session && (session->peer.sin_addr.s_addr != peer->sin_addr.s_addr ||
                       session->peer.sin_port != peer->sin_port)) {
        session = session->next;
    }
    return session;
}

static int make_cookie(SSL *ssl, unsigned char *cookie, unsigned int *length) {
    Session *session = BIO_get_data(SSL_get_rbio(ssl));
    unsigned char peer[6];
    memcpy(peer, &session->peer.sin_addr, 4);
    memcpy(peer + 4, &session->peer.sin_port, 2);
    return HMAC(EVP_sha256(), cookie_secret, sizeof cookie_secret, peer, sizeof peer, cookie,
                length) != NULL;
}

static int verify_cookie(SSL *ssl, const unsigned char *cookie, unsigned int length) {
    unsigned char own[EVP_MAX_MD_SIZE];
    unsigned int own_length;
    return make_cookie(ssl, own, &own_length) && own_length == length &&
           CRYPTO_memcmp(own, cookie, length) == 0;
}

static unsigned int find_key(SSL *ssl, const char *identity, unsigned char *out, unsigned int room) {
    (void)ssl, (void)identity;
    must(key_length <= (long)room, "room for the key");
    memcpy(out, key, key_length);
    return (unsigned int)key_length;
}

static void open_socket(const char *port) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    udp = socket(AF_INET, SOCK_DGRAM, 0);
    must(udp >= 0 && bind(udp, (struct sockaddr *)&own, sizeof own) == 0, "bind");
}

static void make_context(void) {
    context = SSL_CTX_new(DTLS_server_method());
    must(context && SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION), "SSL_CTX_new");
    must(SSL_CTX_set_cipher_list(context, "PSK-AES128-CCM8:@SECLEVEL=0"), "the cipher suite");
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_QUERY_MTU);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_psk_server_callback(context, find_key);
    SSL_CTX_set_cookie_generate_cb(context, make_cookie);
    SSL_CTX_set_cookie_verify_cb(context, verify_cookie);
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "one datagram");
    must(method && RAND_bytes(cookie_secret, sizeof cookie_secret) == 1, "memory");
    BIO_meth_set_read(method, read_datagram);
    BIO_meth_set_write(method, write_datagram);
    BIO_meth_set_ctrl(method, control);
}

int main(int count, char **words) {
    must(count == 3, "server PORT KEY");
    unsigned char *bytes = OPENSSL_hexstr2buf(words[2], &key_length);
    must(bytes && key_length <= (long)sizeof key, "a key in hex");
    memcpy(key, bytes, key_length);
    open_socket(words[1]);
    make_context();
    BIO_ADDR *unused = BIO_ADDR_new();
    Session *listening = new_session();
    for (;;) {
        struct sockaddr_in peer;
        socklen_t peer_length = sizeof peer;
        datagram_length = recvfrom(udp, datagram, sizeof datagram, 0, (struct sockaddr *)&peer,
                                   &peer_length);
        Session *session = find(&peer);
        if (!session) {
            listening->peer = peer;
            if (DTLSv1_listen(listening->ssl, unused) <= 0) {
                ERR_clear_error();
                continue;
            }
            session = listening;
            session->next = *bucket_of(&peer);
            *bucket_of(&peer) = session;
            listening = new_session();
        }
        char content[DATAGRAM_MAX];
        int length;
        while ((length = SSL_read(session->ssl, content, sizeof content)) > 0) {
            SSL_write(session->ssl, content, length);
        }
        ERR_clear_error();
        if (SSL_is_init_finished(session->ssl)) {
            SSL_free_buffers(session->ssl);
        }
    }
}
