// Port 80 beside a server with its own certificate: answers HTTP-01 challenges (RFC 8555, section 8.3) from the folder
// `public`, which is certbot's --webroot, and redirects every other request to https. docs/install.md installs it.
// server.allowed_hosts in svc.json lists the names, so that no other Host decides where the redirect goes.

export const challenge = ({ params, file }) =>
  file(params.token, { in: 'public/.well-known/acme-challenge', type: 'text/plain' })

export default ({ host, path, rawQuery, redirect }) =>
  redirect(`https://${new URL(`http://${host}`).hostname}${path}${rawQuery}`, 308)
