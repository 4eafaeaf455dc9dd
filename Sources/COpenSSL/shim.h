#ifndef IEUM_COPENSSL_SHIM_H
#define IEUM_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* Macros with a cast or a call in them, which Swift does not import. */
static const uint64_t ieum_ssl_server_options = SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                                SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA;
static const uint64_t ieum_ssl_client_options = SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION;
static const int ieum_bio_flags_retry_read = BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY;
static const int ieum_bio_flags_all_retries = BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY;

/* A macro around a function with a variable number of arguments. */
static inline EVP_PKEY *ieum_generate_p256_key(void) { return EVP_EC_gen("P-256"); }

#endif
