// Loaded before a server, with `--import`: a crypto library without MD5, HMAC-SHA1 and scrypt, as a strict FIPS mode.
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const { createHash, createHmac } = crypto
const refuse = () => {
  throw Object.assign(new Error('error:0308010C:digital envelope routines::unsupported'), { code: 'ERR_OSSL_EVP_UNSUPPORTED' })
}
crypto.createHash = (name, ...rest) => (name.toLowerCase() === 'md5' ? refuse() : createHash(name, ...rest))
crypto.createHmac = (name, ...rest) => (name.toLowerCase() === 'sha1' ? refuse() : createHmac(name, ...rest))
crypto.scrypt = refuse
crypto.scryptSync = refuse
syncBuiltinESMExports()
