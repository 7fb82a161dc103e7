/**
 * Markdown as a separate document: in a frame without scripts and without an origin, which may load
 * nothing. HTML in it is shown as text, pictures as their alternative text, and only web and mail
 * links are links.
 */
import { useComputedColorScheme, useMantineStyleNonce } from '@mantine/core';
import MarkdownIt from 'markdown-it';
import style from './markdown-frame.css?inline';

const markdown = new MarkdownIt({ html: false });
markdown.validateLink = (address) => /^(?:https?|mailto):/i.test(address);
markdown.core.ruler.push('links_without_opener', ({ tokens }) => {
  for (const token of tokens.flatMap(({ children }) => children ?? [])) {
    if (token.type !== 'link_open') continue;
    token.attrSet('target', '_blank');
    token.attrSet('rel', 'noopener noreferrer');
  }
});
markdown.renderer.rules.image = (tokens, at) => markdown.utils.escapeHtml(tokens[at]?.content ?? '');

export function MarkdownFrame({ source, title }: { source: string; title: string }) {
  const scheme = useComputedColorScheme('light', { getInitialValueInEffect: false });
  const nonce = useMantineStyleNonce()?.() ?? '';
  const page = [
    `<!doctype html><html data-scheme="${scheme}"><meta charset="utf-8">`,
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'">`,
    `<style nonce="${nonce}">${style}</style>`,
    markdown.render(source),
  ];
  // A link opens an ordinary page without the sandbox and without an opener.
  const sandbox = 'allow-popups allow-popups-to-escape-sandbox';
  return <iframe key={scheme} sandbox={sandbox} srcDoc={page.join('')} title={title} />;
}
