// The open documents of the application.

// The open documents, in visible tabs or not, that `wanted` selects by path.
const openContexts = (app, documents, wanted) => {
  const contexts = new Set();
  for (const widget of app.shell.widgets("main")) {
    const context = documents.contextForWidget(widget);
    if (context && wanted(context.localPath)) contexts.add(context);
  }
  return [...contexts];
};

const KERNEL_MS = 10000;

// Wait until restored documents are loaded and have what a new kernel writes into their metadata.
export const documentsRestored = async (app, documents) => {
  await app.restored;
  const limit = new Promise((resolve) => setTimeout(resolve, KERNEL_MS));
  const restored = async (context) => {
    await context.ready;
    const session = context.sessionContext;
    if (!session.kernelPreference.shouldStart) return;
    await session.ready;
    await session.session?.kernel?.info;
  };
  const all = openContexts(app, documents, () => true).map(restored);
  await Promise.race([limit, Promise.allSettled(all)]);
};

// Load the open documents in a folder again from their files; those with changes are left as they are.
export const reloadDocuments = async (app, documents, folder) => {
  for (const context of openContexts(app, documents, (path) => isIn(path, folder))) {
    await context.ready;
    if (!context.model.dirty) await context.revert();
  }
};

// Save the open documents with changes that `wanted` selects by path.
export const saveDocuments = async (app, documents, wanted = () => true) => {
  const changed = openContexts(app, documents, wanted).filter(({ model }) => model.dirty && !model.readOnly);
  const failed = [];
  for (const context of changed) {
    try {
      await context.save();
    } catch {
      // The application shows the reason in its own dialog; continue with the other documents.
      failed.push(context.path);
    }
  }
  return { saved: changed.length - failed.length, failed };
};

// Whether a path is in a folder, at any depth.
export const isIn = (path, folder) => path === folder || path.startsWith(`${folder}/`);

// Show a folder; pages of Notebook have no file browser beside a document.
export const openFolder = (app, site, path) => {
  const command = "filebrowser:go-to-path";
  if (app.commands.hasCommand(command)) return app.commands.execute(command, { path });
  return window.open(site.treePage(path), "_blank", "noopener");
};

// Open a document by its path; returns its widget.
export const openDocument = (app, path) => app.commands.execute("docmanager:open", { path });
