// The SQL editor: CodeMirror 6 with its SQL mode and completion, put into a shadow root so that its styles are adopted
// style sheets, which a policy without 'unsafe-inline' allows. Colours are the page's own variables.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { PostgreSQL, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warm)" },
  { tag: tags.comment, color: "var(--faint)", fontStyle: "italic" },
]);

const look = EditorView.theme({
  "&": { background: "var(--field)", color: "var(--ink)", border: "1px solid var(--edge)", borderRadius: ".4rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { font: ".925rem/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", minHeight: "7.5rem" },
  ".cm-content": { caretColor: "var(--ink)", padding: ".6rem 0" },
  ".cm-line": { padding: "0 .8rem" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-placeholder": { color: "var(--faint)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "var(--chosen)" },
  "&.cm-focused .cm-matchingBracket": { background: "var(--chosen)" },
  ".cm-tooltip": { background: "var(--card)", color: "var(--ink)", border: "1px solid var(--edge)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent)", color: "var(--page)" },
  ".cm-completionDetail": { color: "var(--faint)" },
});

// What is typed over a selection is put in here: a browser would style it, which the policy refuses and reports.
function replacing(event, view) {
  const { from, to, empty } = view.state.selection.main;
  if (event.inputType !== "insertText" || !event.data || empty || view.composing) return false;
  const typed = () => view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  event.preventDefault();
  if (!view.state.facet(EditorView.inputHandler).some((handler) => handler(view, from, to, event.data, typed))) view.dispatch(typed());
  return true;
}

// schema: {table: [{label, detail}, ...]}; change(text) after every edit; submit() on Ctrl+Enter or Cmd+Enter.
export function mount(host, { text, schema, label, description, change, submit }) {
  const root = host.attachShadow({ mode: "open" });
  const asks = { key: "Mod-Enter", run: () => (submit(), true) };
  const told = EditorView.updateListener.of((update) => update.docChanged && change(update.state.doc.toString()));
  return new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(keymap.of([asks])),
        history(),
        drawSelection(),
        highlightSpecialChars(),
        bracketMatching(),
        closeBrackets(),
        sql({ dialect: PostgreSQL, schema, upperCaseKeywords: true }),
        autocompletion(),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, "aria-description": description }),
        EditorView.domEventHandlers({ beforeinput: replacing }),
        placeholder("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"),
        syntaxHighlighting(colours),
        look,
        told,
      ],
    }),
  });
}
