/** Sends mail through an SMTP server, with nodemailer, which is loaded with the first mail. */
import type { Transporter } from 'nodemailer';
import type { MailAddress, SmtpServer } from '../../config/mail-settings.ts';
import { type Mailer, MailRefused, type OutgoingMail } from '../../mail/mailer.ts';

/** A connection and its greeting; a silence; all of one mail. */
const CONNECT_MS = 10_000;
const SILENCE_MS = 20_000;
const TOTAL_MS = 60_000;
/** Bytes of one response. */
const MAX_RESPONSE = 64 * 1024;

export interface SmtpMailerOptions {
  readonly server: SmtpServer;
  readonly from: MailAddress;
  /** Default: SILENCE_MS and TOTAL_MS. */
  readonly silenceMs?: number;
  readonly totalMs?: number;
}

export class SmtpMailer implements Mailer {
  readonly server: string;
  readonly #options: SmtpMailerOptions;
  #transport: Promise<Transporter> | undefined;

  constructor(options: SmtpMailerOptions) {
    this.#options = options;
    this.server = `${options.server.host}:${options.server.port}`;
  }

  async send({ messageId, to, subject, text }: OutgoingMail, signal: AbortSignal): Promise<void> {
    const { from, totalMs = TOTAL_MS } = this.#options;
    this.#transport ??= this.#connect();
    const transport = await this.#transport;
    const ends = AbortSignal.timeout(totalMs);
    try {
      await transport.sendMail({
        from: { ...from },
        // An object: a text could contain a list of addresses.
        to: { name: '', address: to },
        // Prevents automatic replies.
        headers: { 'auto-submitted': 'auto-generated' },
        messageId: `<${messageId}>`,
        subject,
        text,
        signal: AbortSignal.any([signal, ends]),
      });
    } catch (error) {
      signal.throwIfAborted();
      if (ends.aborted) throw new Error(`the mail server took longer than ${totalMs / 1000} s`);
      throw isRefused(error) ? new MailRefused((error as Error).message) : explained(error as Error);
    }
  }

  async #connect(): Promise<Transporter> {
    const { createTransport } = await import('nodemailer');
    const { host, port, tls, user, password } = this.#options.server;
    const { silenceMs = SILENCE_MS } = this.#options;
    return createTransport({
      host,
      port,
      secure: tls === 'smtps',
      requireTLS: tls === 'starttls',
      ignoreTLS: tls === 'off',
      ...(user === '' ? {} : { auth: { user, pass: password } }),
      connectionTimeout: Math.min(CONNECT_MS, silenceMs),
      greetingTimeout: Math.min(CONNECT_MS, silenceMs),
      socketTimeout: silenceMs,
      maxResponseSize: MAX_RESPONSE,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }
}

/** A permanent error for this address; others may be temporary. */
function isRefused(error: unknown): boolean {
  const { code, responseCode = 0 } = error as { readonly code?: string; readonly responseCode?: number };
  return code === 'EENVELOPE' && responseCode >= 500;
}

/** The error with a fix for the operator. */
function explained(error: Error & { readonly code?: string }): Error {
  const { code, message } = error;
  if (code === 'EAUTH')
    return new Error(`the mail server rejected the user or the password in CLOUDLET_SMTP_URL: ${message}`);
  if (code === 'ETLS') return new Error(`the mail server does not support STARTTLS: ${message}`);
  if (!/certificate|altnames/i.test(message)) return error;
  return new Error(
    `the mail server's certificate was rejected: ${message}. Use the certificate's host name in CLOUDLET_SMTP_URL. ` +
      'For a private CA, set NODE_EXTRA_CA_CERTS to its certificate file',
  );
}
