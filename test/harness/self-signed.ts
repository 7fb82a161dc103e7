/** A self-signed certificate, created by openssl. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** For 127.0.0.1, or for this name only. `certFile`: for NODE_EXTRA_CA_CERTS. */
export function selfSigned(directory: string, name?: string) {
  const [keyFile, certFile] = ['key.pem', 'cert.pem'].map((file) =>
    join(directory, `${name ?? 'ip'}-${file}`),
  );
  const names = name === undefined ? 'IP:127.0.0.1' : `DNS:${name}`;
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const subject = ['-subj', '/CN=mail', '-addext', `subjectAltName=${names}`];
  const files = ['-keyout', String(keyFile), '-out', String(certFile)];
  execFileSync('openssl', ['req', '-x509', ...made, ...subject, ...files], { stdio: 'pipe' });
  const [key, cert] = [keyFile, certFile].map((file) => readFileSync(String(file), 'utf8'));
  return { key: String(key), cert: String(cert), certFile: String(certFile) };
}
