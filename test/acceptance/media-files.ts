/** Audio, video and a PDF file, generated: formats that browsers play, seek in and show. */
import type { Page } from 'playwright-core';

const RATE = 22_050;

/** A tone of this many seconds, 44 KB for each. */
export function wav(seconds: number): Buffer {
  const samples = RATE * seconds;
  const file = Buffer.alloc(44 + 2 * samples);
  file.write('RIFF', 0);
  file.writeUInt32LE(36 + 2 * samples, 4);
  file.write('WAVEfmt ', 8);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(RATE, 24);
  file.writeUInt32LE(2 * RATE, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write('data', 36);
  file.writeUInt32LE(2 * samples, 40);
  for (let at = 0; at < samples; at++) file.writeInt16LE(Math.round(8000 * Math.sin(at / 8)), 44 + 2 * at);
  return file;
}

/** An element of EBML: its id, its size in eight bytes, and its content. */
function element(id: string, ...content: readonly Uint8Array[]): Buffer {
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE(BigInt(content.reduce((sum, { length }) => sum + length, 0)));
  size[0] = 1;
  return Buffer.concat([Buffer.from(id, 'hex'), size, ...content]);
}

function uint(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function float(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return bytes;
}

const FILM = { width: 640, height: 480 };

/** A video with an index, of one frame a second; each is a key frame. */
export function webm(frames: readonly Uint8Array[]): Buffer {
  const info = element(
    '1549a966',
    element('2ad7b1', uint(1e6)),
    element('4489', float(frames.length * 1000)),
  );
  const size = [element('b0', uint(FILM.width)), element('ba', uint(FILM.height))];
  const track = [element('d7', uint(1)), element('73c5', uint(1)), element('83', uint(1))];
  const codec = element('86', Buffer.from('V_VP8'));
  const tracks = element('1654ae6b', element('ae', ...track, codec, element('e0', ...size)));
  const clusters = frames.map((frame, at) => {
    const block = element('a3', Buffer.from([0x81, 0, 0, 0x80]), frame);
    return element('1f43b675', element('e7', uint(at * 1000)), block);
  });
  const indexOf = (begin: number) => {
    let position = begin;
    const points = clusters.map((cluster, at) => {
      const place = [element('f7', uint(1)), element('f1', uint(position))];
      position += cluster.length;
      return element('bb', element('b3', uint(at * 1000)), element('b7', ...place));
    });
    return element('1c53bb6b', ...points);
  };
  const head = info.length + tracks.length;
  const index = indexOf(head + indexOf(0).length);
  const kind = [element('4282', Buffer.from('webm')), element('4287', uint(2)), element('4285', uint(2))];
  return Buffer.concat([element('1a45dfa3', ...kind), element('18538067', info, tracks, index, ...clusters)]);
}

/** Key frames of VP8, drawn by the browser: numbers on noise. A WebP image contains one. */
export async function framesFrom(page: Page, count: number): Promise<Buffer[]> {
  const pictures = (await page.evaluate(
    `(() => {
      const canvas = document.createElement('canvas');
      Object.assign(canvas, ${JSON.stringify(FILM)});
      const paint = canvas.getContext('2d');
      return Array.from({ length: ${count} }, (_, at) => {
        const noise = paint.createImageData(canvas.width, canvas.height);
        for (let i = 0; i < noise.data.length; i++) noise.data[i] = i % 4 === 3 ? 255 : Math.random() * 255;
        paint.putImageData(noise, 0, 0);
        paint.fillStyle = 'hsl(' + at * 37 % 360 + ' 80% 40%)';
        paint.fillRect(120, 120, 400, 240);
        paint.fillStyle = 'white';
        paint.font = '160px sans-serif';
        paint.fillText(String(at), 200, 300);
        return canvas.toDataURL('image/webp', 0.9);
      });
    })()`,
  )) as string[];
  return pictures.map((url) => {
    const bytes = Buffer.from(url.slice(url.indexOf(',') + 1), 'base64');
    const at = bytes.indexOf('VP8 ', 12, 'latin1');
    return bytes.subarray(at + 8, at + 8 + bytes.readUInt32LE(at + 4));
  });
}

/** A PDF file of one page with this text. */
export function paper(words: string): Buffer {
  const text = `BT /F1 24 Tf 20 60 Td (${words}) Tj ET`;
  const objects = [
    '<</Type/Catalog/Pages 2 0 R>>',
    '<</Type/Pages/Kids[3 0 R]/Count 1>>',
    '<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 120]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>',
    `<</Length ${text.length}>>stream\n${text}\nendstream`,
    '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>',
  ];
  let file = '%PDF-1.4\n';
  const places = objects.map((object, at) => {
    const place = file.length;
    file += `${at + 1} 0 obj${object}endobj\n`;
    return `${String(place).padStart(10, '0')} 00000 n \n`;
  });
  const xref = file.length;
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${places.join('')}`;
  file += `trailer<</Size ${objects.length + 1}/Root 1 0 R>>\nstartxref\n${xref}\n%%EOF\n`;
  return Buffer.from(file, 'latin1');
}
