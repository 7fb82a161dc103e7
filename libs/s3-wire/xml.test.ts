import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { randomFrom } from '../../server/testing/random.ts';
import { S3Error } from './s3-error.ts';
import {
  child,
  children,
  decodeKey,
  encodeKey,
  errorDocument,
  parseXml,
  readXml,
  textOf,
  type XmlElement,
  XmlError,
  xmlDocument,
} from './xml.ts';

const LIMIT = 1 << 20;
const parse = (text: string): XmlElement => parseXml(Buffer.from(text), LIMIT);
const isMalformed = (error: unknown) => error instanceof S3Error && error.code === 'MalformedXML';

const REFUSED: Readonly<Record<string, string>> = {
  'a document type': '<!DOCTYPE a><a/>',
  'its own entity': '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
  'an undefined entity': '<a>&nbsp;</a>',
  'a bare ampersand': '<a>a & b</a>',
  'a reference without an end': '<a>&amp</a>',
  'its own entity in an attribute': '<a b="&c;"/>',
  'a document type after the root': '<a/><!DOCTYPE a>',
  'a reference to NUL': '<a>&#0;</a>',
  'a reference to a surrogate': '<a>&#xD800;</a>',
  'a reference beyond Unicode': '<a>&#x110000;</a>',
  'crossed tags': '<a><b></a></b>',
  'another prefix at the end': '<x:a></y:a>',
  'an unclosed root': '<a><b></b>',
  'an unclosed tag': '<a',
  'an unopened tag': '</a>',
  'an attribute twice': '<a b="1" b="2"/>',
  'an attribute without quotes': '<a b=1/>',
  'attributes without space': '<a b="1"c="2"/>',
  'trailing text': '<a/>x',
  'text before the root': 'x<a/>',
  'a second root': '<a/><b/>',
  'only white space': ' ',
  'only a declaration': '<?xml version="1.0"?>',
  'a late declaration': ' <?xml version="1.0"?><a/>',
  'a processing instruction': '<a><?php 1 ?></a>',
  'another encoding': '<?xml version="1.0" encoding="ISO-8859-1"?><a/>',
  'a control character': '<a>\u0001</a>',
  '-- in a comment': '<a><!-- a -- b --></a>',
  'an open comment': '<a><!-- a </a>',
  'CDATA outside': '<![CDATA[x]]><a/>',
  ']]> in text': '<a>]]></a>',
  'a name that starts with a digit': '<1a/>',
  'a name with two colons': '<a:b:c/>',
  '100,001 elements': `<a>${'<b/>'.repeat(100_000)}</a>`,
  '17 levels': `${'<a>'.repeat(17)}${'</a>'.repeat(17)}`,
};

describe('the reader refuses', () => {
  for (const [what, text] of Object.entries(REFUSED)) {
    test(what, () => {
      assert.throws(() => parse(text), isMalformed);
      assert.throws(() => readXml(text), XmlError);
    });
  }

  test('control characters in texts, unless that is allowed', () => {
    const text = '<a b="c">\u0001\0&#0;&#xD800;<![CDATA[\uFFFF]]></a>';
    assert.throws(() => parseXml(Buffer.from(text), 100), /control character/);
    assert.throws(() => parseXml(Buffer.from('<a>&#0;</a>'), 100), /no character/);
    assert.equal(parseXml(Buffer.from(text), 100, true).text, '\u0001\0\0\uD800\uFFFF');
    assert.throws(() => parseXml(Buffer.from('<a b="\u0001"/>'), 100, true), /control character/);
    assert.throws(() => parseXml(Buffer.from('<a>&#x110000;</a>'), 100, true), /no character/);
  });

  test('what is not UTF-8', () => {
    assert.throws(() => parseXml(Buffer.from('<a>\xe9</a>', 'latin1'), LIMIT), isMalformed);
  });

  test('a document above the limit, before it reads it', () => {
    assert.throws(
      () => parseXml(Buffer.from('<a></a>'), 6),
      (error: unknown) => error instanceof S3Error && error.code === 'MaxMessageLengthExceeded',
    );
  });
});

describe('the reader', () => {
  test('drops prefixes and attributes, and keeps order', () => {
    const root = parse(
      '\uFEFF<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<!-- c --><s:Delete xmlns:s="u">' +
        "<s:Object a='<>'></s:Object></s:Delete>".replace("'<>'", "'&lt;&#62;>'") +
        '\n<!-- d -->\n',
    );
    assert.deepEqual([root.name, root.children.map(({ name }) => name)], ['Delete', ['Object']]);
    const list = parse('<a><b>1</b><c/><b> 2 </b></a>');
    assert.deepEqual(
      children(list, 'b').map(({ text }) => text),
      ['1', ' 2 '],
    );
    assert.deepEqual([textOf(list, 'b'), textOf(list, 'c'), textOf(list, 'd')], ['1', '', undefined]);
    assert.equal(child(list, 'd'), undefined);
  });

  test('reads text as it is', () => {
    assert.equal(
      parse('<a> x&#xD;&#x1;&#13;&lt;&amp;amp;&#x1F600; <![CDATA[<&amp;>]]></a>').text,
      ' x\r\u0001\r<&amp;😀 <&amp;>',
    );
    assert.equal(parse('<a>a\r\nb\rc</a>').text, 'a\nb\nc');
    assert.equal(parse('<a>00123</a>').text, '00123');
    assert.equal(parse(`${'<a>'.repeat(16)}${'</a>'.repeat(16)}`).name, 'a');
  });

  test('a text goes out and comes back the same, whatever its characters', () => {
    const below = randomFrom(7);
    for (let round = 0; round < 2000; round += 1) {
      const codes = Array.from({ length: below(20) }, () => 1 + below(below(3) === 0 ? 0x10ffff : 0x100));
      const text = String.fromCodePoint(...codes.filter((code) => code < 0xd800 || code > 0xdfff));
      const written = xmlDocument('R', [['Key', text]]);
      assert.equal(textOf(parse(written), 'Key'), text);
    }
  });

  test('reads as many elements as a list of 10,000 parts has', () => {
    assert.equal(readXml(`<a>${'<b/>'.repeat(99_999)}</a>`).children.length, 99_999);
  });

  test('reads an answer or throws an XmlError, whatever comes', () => {
    const tokens = fc.constantFrom(
      '<',
      '>',
      '/',
      'a',
      '&',
      ';',
      '"',
      '=',
      ' ',
      '<a>',
      '</a>',
      '<!',
      '--',
      '?',
    );
    fc.assert(
      fc.property(fc.array(tokens), (parts) => {
        try {
          readXml(parts.join(''));
        } catch (error) {
          assert.ok(error instanceof XmlError);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('says that there is nothing', () => {
    assert.throws(() => parse(''), { code: 'MissingRequestBodyError' });
  });

  test('damaged documents make S3Errors only', () => {
    const below = randomFrom(11);
    const document = Buffer.from(
      '<?xml version="1.0"?><D xmlns="u"><!-- c --><O a="b&amp;"><K>é&#xD;</K><V><![CDATA[x]]></V></O></D>',
    );
    let read = 0;
    for (let round = 0; round < 20_000; round += 1) {
      const bytes = Buffer.from(document);
      for (let hits = below(4); hits >= 0; hits -= 1) {
        const other = below(2) === 0 ? below(256) : (document[below(document.length)] ?? 0);
        bytes[below(bytes.length)] = other;
      }
      const cut = below(3) === 0 ? bytes.subarray(0, 1 + below(bytes.length - 1)) : bytes;
      try {
        parseXml(cut, LIMIT);
        read += 1;
      } catch (error) {
        assert.ok(isMalformed(error), String(error));
      }
    }
    assert.ok(read > 100 && read < 15_000, `${read} could be read`);
  });
});

describe('the writer', () => {
  test('writes nested pairs in order, and leaves undefined out', () => {
    assert.equal(
      xmlDocument('ListResult', [
        ['Name', 'a&b'],
        ['MaxKeys', 1000],
        ['IsTruncated', false],
        ['Marker', undefined],
        ['Prefix', ''],
        undefined,
        ['Contents', [['Key', '<k>\t\n']]],
        ['Contents', ['Key', '"']],
        ['Grantee xsi:type="Group"', [['URI', 'u']]],
      ]),
      '<?xml version="1.0" encoding="UTF-8"?>\n<ListResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' +
        '<Name>a&amp;b</Name><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated><Prefix></Prefix>' +
        '<Contents><Key>&lt;k&gt;&#x9;&#xA;</Key></Contents><Contents><Key>&quot;</Key></Contents>' +
        '<Grantee xsi:type="Group"><URI>u</URI></Grantee></ListResult>',
    );
  });

  test('encodes keys as Amazon does for encoding-type=url', () => {
    assert.equal(encodeKey("a b/c+d~é!'()*\u0001%"), 'a%20b/c%2Bd~%C3%A9%21%27%28%29%2A%01%25');
  });

  test('keys come back from there', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (key) => assert.equal(decodeKey(encodeKey(key)), key)),
    );
  });

  test('an error names code, message, fields and place, escaped', () => {
    const error = new S3Error('NoSuchKey', 'No <such> key', { fields: { Key: 'a&b\r"\u0001' } });
    assert.equal(
      errorDocument(error, { resource: '/b/a&b', requestId: 'R1', hostId: 'H1' }),
      '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code><Message>No &lt;such&gt; key</Message>' +
        '<Key>a&amp;b&#xD;&quot;&#x1;</Key><Resource>/b/a&amp;b</Resource><RequestId>R1</RequestId>' +
        '<HostId>H1</HostId></Error>',
    );
  });
});
