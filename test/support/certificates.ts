import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/**
 * Makes a self-signed certificate for 127.0.0.1 with the command `openssl`.
 * @param name the files are `NAME.pem` and `NAME.key` in the folder, and the certificate's common name is NAME
 * @throws Error that says so when `openssl` is missing
 */
export function makeCertificate(folder: string, name: string): { cert: string; key: string } {
  const files = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1']
  try {
    execFileSync('openssl', [...request, ...subject, '-keyout', files.key, '-out', files.cert], { stdio: 'pipe' })
  } catch (error) {
    throw new Error('Cannot make a certificate for the test: the command `openssl` is needed', { cause: error })
  }
  return files
}
