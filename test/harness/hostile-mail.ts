/** Mail servers that lie, flood, respond slowly or disconnect, for tests of their effects. */
import type { Socket } from 'node:net';

/** A line, or an action instead of one. */
type Answer = string | ((socket: Socket) => void);

export interface HostileServer {
  readonly serve: (socket: Socket) => void;
  /** Appended to its URL. */
  readonly query?: string;
}

const USUAL: Readonly<Record<string, string>> = {
  EHLO: '250 hello',
  MAIL: '250 fine',
  RCPT: '250 fine',
  DATA: '354 go on',
  '.': '250 taken',
  QUIT: '221 bye',
};

/** Implements SMTP, with these answers to some commands; `.` is the end of a message. */
function speaking(odd: Readonly<Record<string, Answer>>): (socket: Socket) => void {
  return (socket) => {
    let rest = '';
    let isData = false;
    socket.setEncoding('latin1').write('220 hello\r\n');
    socket.on('data', (piece: string) => {
      const lines = (rest + piece).split('\r\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (isData && line !== '.') continue;
        const word = line.split(' ', 1)[0] ?? '';
        const answer = odd[word] ?? USUAL[word] ?? '500 unknown';
        isData = word === 'DATA' && answer === USUAL.DATA;
        if (typeof answer === 'string') socket.write(`${answer}\r\n`);
        else answer(socket);
      }
    });
  };
}

/** Sends this repeatedly, as fast as it is read. */
const flood = (piece: string) => (socket: Socket) => {
  const send = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on('drain', send);
  send();
};

const DRIP_MS = 50;

/** Sends one character after the other, endlessly. */
function drip(socket: Socket): void {
  const text = '250-slow\r\n';
  let at = 0;
  const timer = setInterval(() => socket.write(text[at++ % text.length] ?? ''), DRIP_MS);
  socket.on('close', () => clearInterval(timer));
}

const offering = (answer: Answer): HostileServer => ({
  serve: speaking({ EHLO: '250-hello\r\n250 STARTTLS', STARTTLS: answer }),
  query: '?tls=starttls',
});

/** By behaviour. */
export const HOSTILE: Readonly<Record<string, HostileServer>> = {
  'takes the recipient, and not the message': { serve: speaking({ DATA: '451 later' }) },
  'reads the message, and wants it later': { serve: speaking({ '.': '452 no room' }) },
  'reads the message, and hangs up': { serve: speaking({ '.': (socket) => socket.destroy() }) },
  'says 250 to everything': { serve: speaking({ DATA: '250 fine' }) },
  'says 250, and hangs up': { serve: speaking({ RCPT: (socket) => void socket.end('250 fine\r\n') }) },
  'greets in a line without end': { serve: flood('220 hello '.repeat(1000)) },
  'answers in lines without end': { serve: speaking({ EHLO: flood('250-hello\r\n'.repeat(1000)) }) },
  'answers one character at a time': { serve: speaking({ EHLO: drip }) },
  'answers as a web server does': { serve: (socket) => void socket.end('HTTP/1.1 200 OK\r\n\r\nhello') },
  'greets with what is no text': { serve: flood('\0\u00ff\u0080\u001b[2J'.repeat(1000)) },
  'takes no connection': { serve: (socket) => socket.resetAndDestroy() },
  'refuses everybody, and later again': { serve: (socket) => void socket.end('421 too many\r\n') },
  'says nothing': { serve: () => {} },
  'stops in the middle': { serve: speaking({ RCPT: () => {} }) },
  'offers STARTTLS, and refuses it': offering('454 not now'),
  'offers STARTTLS, and speaks no TLS': offering((socket) => {
    socket.write('220 go on\r\n');
    socket.removeAllListeners('data').once('data', () => socket.write('250 no TLS here\r\n'));
  }),
};
