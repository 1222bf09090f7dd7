//! The rules about wording in every language, requirement ids with a prefix, and the user's own
//! documents.

use std::fs;
use std::path::Path;

use agentd_core::check::{self, Extras, vague_words};
use agentd_core::diagnostic::Severity;
use agentd_core::document::spec;
use agentd_core::documents::{Doc, Source};
use agentd_core::ids::SpecId;

/// The codes of what is found in a spec with this requirement and this scenario.
fn codes(requirement: &str, scenario: &str) -> Vec<&'static str> {
    let text = format!(
        "---\nid: a\n---\n\n# Specification: A\n\n## Overview\n\nA.\n\n## Requirements\n\n### R1: A\n\n\
         {requirement}\n\n## Acceptance Criteria\n\n### Scenario: A\n\n- **WHEN** {scenario}\n- **THEN** A\n"
    );
    let doc = Doc::new(Source::Text(text), spec::parse);
    let report = check::main_spec(&SpecId::new("a").unwrap(), &doc, &Extras::default());
    report.map(|r| r.diagnostics.iter().map(|d| d.rule.code).collect()).unwrap_or_default()
}

/// Lines of sentences.
fn lines(text: &'static str) -> Vec<&'static str> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert!(lines.len() >= 8, "only {}", lines.len());
    lines
}

/// What a language says.
struct Sentences {
    /// These oblige, and name an outcome.
    obliging: &'static str,
    /// These do not oblige.
    stating: &'static str,
    /// These have a vague word.
    vague: &'static str,
    /// These have none.
    exact: &'static str,
    /// In these, something goes wrong.
    failing: &'static str,
    /// In these, nothing does.
    happy: &'static str,
}

// contract R5
#[test]
fn requirements_and_scenarios_are_understood_in_every_language() {
    for language in [TRADITIONAL, SIMPLIFIED, JAPANESE, GERMAN, FRENCH, SPANISH] {
        for sentence in lines(language.obliging) {
            let found = codes(sentence, "x fails");
            assert!(!found.contains(&"Q002") && !found.contains(&"Q003"), "{sentence} {found:?}");
        }
        for sentence in lines(language.stating) {
            assert!(codes(sentence, "x fails").contains(&"Q002"), "obliging: {sentence}");
        }
        for sentence in lines(language.vague) {
            assert!(!vague_words(sentence).is_empty(), "exact: {sentence}");
        }
        for sentence in lines(language.exact) {
            assert_eq!(vague_words(sentence), [""; 0], "vague: {sentence}");
        }
        for sentence in lines(language.failing) {
            assert!(!codes("It MUST return 1.", sentence).contains(&"Q004"), "happy: {sentence}");
        }
        for sentence in lines(language.happy) {
            assert!(codes("It MUST return 1.", sentence).contains(&"Q004"), "failing: {sentence}");
        }
    }
}

const TRADITIONAL: Sentences = Sentences {
    obliging: "
        系統必須在 200 毫秒內回傳結果。
        伺服器不得儲存明文密碼。
        使用者輸入錯誤密碼五次後，帳號應鎖定十五分鐘。
        登入頁面應該顯示錯誤訊息。
        每筆訂單須包含唯一的編號。
        API 需在失敗時回應 401。
        密碼至少要有 12 個字元。
        程式務必寫入記錄檔。
        匯出時禁止包含個人資料的欄位，只列出編號。
        MUST回傳 401。",
    stating: "
        應用程式回傳結果。
        系統回應使用者的要求並顯示 3 筆資料。
        介面對應到三個欄位。
        本節列出所有需求。
        這個模組適應不同的螢幕。
        無須登入即顯示首頁。
        所需時間為 3 秒。
        他答應每天寄出一封信。",
    vague: "
        讓搜尋更快。
        頁面必須快速載入。
        系統應盡快通知使用者。
        介面必須簡單。
        操作必須直覺且友善。
        必要時重新整理。
        系統必須有足夠的記憶體。
        支援 PDF、Word 等等。",
    exact: "
        頁面必須在 300 毫秒內顯示。
        按下快速鍵 Ctrl+S 後必須儲存。
        使用快速排序演算法。
        帳號在五次失敗後必須鎖定。
        支援簡單郵件傳輸協定。
        應用程式必須回傳 200。
        檔案上限為 10 MB。
        每天早上八點寄出報表。",
    failing: "
        第五次失敗後顯示錯誤訊息
        密碼不正確
        檔案不存在
        連線逾時
        使用者沒有權限
        欄位為空
        名稱重複
        磁碟已滿，無法寫入",
    happy: "
        使用者輸入密碼
        使用者按下登入
        訂單建立完成
        顯示首頁
        系統寄出通知信
        管理員開啟報表
        檔案上傳完成
        太陽圖示亮起",
};

const SIMPLIFIED: Sentences = Sentences {
    obliging: "
        系统必须在 200 毫秒内返回结果。
        服务器不得保存明文密码。
        连续失败五次后，账号应锁定十五分钟。
        登录页面应该显示错误消息。
        每个订单须包含唯一的编号。
        接口需在失败时返回 401。
        程序务必写入日志文件并记录时间。
        导出时禁止包含手机号码，只列出编号。",
    stating: "
        应用程序返回结果。
        系统响应用户的请求并显示 3 条数据。
        界面对应三个字段。
        本节列出所有需求。
        该模块适应不同的屏幕。
        无须登录即显示首页。
        所需时间为 3 秒。
        他答应每天发送一封邮件。",
    vague: "
        让搜索更快。
        页面必须快速加载。
        系统应尽快通知用户。
        界面必须简单。
        操作必须直观。
        必要时刷新。
        系统必须有足够的内存。
        尽可能减少等待。",
    exact: "
        页面必须在 300 毫秒内显示。
        按下快捷键 Ctrl+S 后必须保存。
        使用快速排序算法。
        账号在五次失败后必须锁定。
        支持简单邮件传输协议。
        应用程序必须返回 200。
        文件上限为 10 MB。
        每天早上八点发送报表。",
    failing: "
        第五次失败后显示错误消息
        密码不正确
        文件不存在
        连接超时
        用户没有权限
        字段为空
        名称重复
        磁盘已满，无法写入",
    happy: "
        用户输入密码
        用户点击登录
        订单创建完成
        显示首页
        系统发送通知
        管理员打开报表
        文件上传完成
        应用启动",
};

const JAPANESE: Sentences = Sentences {
    obliging: "
        サーバーは 200 ミリ秒以内に応答しなければならない。
        パスワードを平文で保存してはならない。
        五回失敗した場合、アカウントをロックするべきである。
        エラーメッセージを表示すること。
        検索結果は 3 秒以内に返すこと。
        応答は JSON を返さなければなりません。
        ログは 30 日間保存するものとする。
        注文ごとに一意の番号を付ける必要がある。
        ファイルを削除してはいけない。",
    stating: "
        サーバーは結果を返す。
        応答は三つの項目を含む。
        べき等な操作を一覧に表示する。
        べき乗を表示する。
        失敗したことを表示する。
        請求書のことを三回聞かれる。
        ログは保存される。
        要件の一覧を表示する。
        アカウントはロックされる。
        需要予測を表示する。",
    vague: "
        検索をより速くする。
        ページは高速に表示しなければならない。
        適切なメッセージを表示すること。
        必要に応じて更新すること。
        使いやすい画面にすること。
        できるだけ早く通知すること。
        PDF などに対応すること。
        十分なメモリを確保すること。",
    exact: "
        ページは 300 ミリ秒以内に表示しなければならない。
        高速道路の料金を表示すること。
        五回失敗したらロックすること。
        応答は 200 を返すこと。
        ファイルは 10 MB までとする。
        毎朝八時に送信すること。
        一覧を名前順に並べること。
        パスワードは 12 文字以上とする。",
    failing: "
        パスワードが間違っている
        ファイルが存在しない
        接続がタイムアウトする
        権限がなく拒否される
        入力が空である
        名前が重複している
        ディスクに書き込めずエラーになる
        期限切れのトークンを送る",
    happy: "
        利用者がパスワードを入力する
        利用者がログインする
        注文が作成される
        トップページを表示する
        通知を送信する
        管理者がレポートを開く
        アップロードが完了する
        応答が返る",
};

const GERMAN: Sentences = Sentences {
    obliging: "
        Der Server muss innerhalb von 200 ms antworten.
        Das System darf keine Passwörter im Klartext speichern.
        Nach fünf Fehlversuchen soll das Konto gesperrt werden.
        Die Seite sollte eine Fehlermeldung zeigen.
        Alle Dateien müssen gelöscht werden.
        Jede Bestellung muss eine eindeutige Nummer enthalten.
        Die Nutzer dürfen nur eigene Daten lesen.
        Der Export SOLL höchstens 10 MB haben.",
    stating: "
        Der Server antwortet innerhalb von 200 ms.
        Das System speichert 3 Dateien.
        Die Seite zeigt eine Liste.
        Jede Bestellung hat eine Nummer.
        Das Muster gilt für alle Seiten.
        Die Sollbruchstelle liegt vor dem Ende.
        Alle Dateien liegen im Archiv.
        Die Antwort enthält zwei Felder.",
    vague: "
        Die Seite muss schnell laden.
        Die Bedienung muss einfach sein.
        Die Oberfläche soll benutzerfreundliche Texte haben.
        Das System soll angemessene Grenzen haben.
        Bei Bedarf wird neu geladen.
        Wenn möglich, wird gespeichert.
        Bilder, Texte usw. werden exportiert.
        Die Suche soll möglichst wenig Speicher brauchen.",
    exact: "
        Die Seite muss in 300 ms erscheinen.
        Nach fünf Fehlversuchen wird das Konto gesperrt.
        Der Export hat höchstens 10 MB.
        Die Antwort ist 401.
        Der Schnellzug 12 steht in der Liste.
        Jeden Tag um 8 Uhr wird der Bericht gesendet.
        Die Vielfachheit ist 3.
        Nur der Besitzer darf lesen.",
    failing: "
        das Passwort ist falsch
        die Datei fehlt
        die Verbindung bricht ab und ein Fehler erscheint
        der Nutzer hat keine Berechtigung
        das Feld ist leer
        der Name ist doppelt vergeben
        das Token ist abgelaufen
        der Server antwortet nicht",
    happy: "
        der Nutzer gibt das Passwort ein
        der Nutzer meldet sich an
        die Bestellung wird angelegt
        die Startseite erscheint
        die Nachricht wird gesendet
        die Leitung der Abteilung liest den Bericht
        die Datei ist hochgeladen
        die Liste wird sortiert",
};

const FRENCH: Sentences = Sentences {
    obliging: "
        Le serveur doit répondre en 200 ms.
        Le système ne doit pas enregistrer de mot de passe en clair.
        Après cinq échecs, le compte devrait être verrouillé.
        Les pages doivent afficher un message d'erreur.
        Chaque commande devra contenir un numéro unique.
        Il faut que le serveur renvoie 413.
        L'export ne doit contenir aucun nom.
        Les fichiers doivent être supprimés après 30 jours.
        L'utilisateur peut lire uniquement ses données.",
    stating: "
        Le serveur répond en 200 ms.
        Le système enregistre 3 fichiers.
        La page affiche une liste.
        Chaque commande a un numéro.
        Le doigt touche un bouton.
        La réponse contient deux champs.
        Les fichiers sont supprimés.
        Un message est envoyé.",
    vague: "
        La page doit être rapide.
        La recherche doit répondre rapidement.
        L'interface doit être conviviale.
        Le système doit afficher un message approprié.
        Si possible, la page est rechargée.
        Le fichier est enregistré si nécessaire.
        Les tailles doivent être raisonnables.
        L'utilisateur doit pouvoir facilement exporter.",
    exact: "
        La page doit s'afficher en 300 ms.
        Après cinq échecs, le compte est verrouillé.
        L'export fait au plus 10 Mo.
        La réponse est 401.
        Le rapport est envoyé chaque jour à 8 heures.
        Le mot de passe a au moins 12 caractères.
        La liste est triée par nom.
        Le projet est construit avec Vite.",
    failing: "
        le mot de passe est incorrect
        le fichier est manquant
        la connexion échoue
        l'utilisateur n'a pas le droit de lire
        le champ est vide
        le nom existe déjà
        le jeton a expiré
        le disque refuse l'écriture",
    happy: "
        l'utilisateur saisit le mot de passe
        l'utilisateur se connecte
        la commande est enregistrée
        la page d'accueil s'affiche
        le message est envoyé
        la vidéo est lue
        le fichier est chargé
        la liste est triée",
};

const SPANISH: Sentences = Sentences {
    obliging: "
        El servidor debe responder en 200 ms.
        El sistema no debe guardar contraseñas en texto plano.
        Tras cinco fallos, la cuenta debería bloquearse.
        Las páginas deben mostrar un mensaje de error.
        Cada pedido deberá contener un número único.
        El token no podrá usarse después de cerrar la sesión.
        La exportación no debe incluir ningún nombre.
        Los archivos tienen que borrarse después de 30 días.
        El usuario puede leer solo sus datos.",
    stating: "
        El servidor responde en 200 ms.
        El sistema guarda 3 archivos.
        La página muestra una lista.
        Cada pedido tiene un número.
        El debate termina antes del viernes.
        La respuesta contiene dos campos.
        Los archivos se borran.
        Se envía un mensaje.",
    vague: "
        La página debe ser rápida.
        La búsqueda debe responder rápidamente.
        La interfaz debe ser intuitiva.
        El sistema debe mostrar un mensaje adecuado.
        Si es posible, se recarga la página.
        El archivo se guarda según sea necesario.
        Los límites deben ser razonables.
        El usuario debe exportar fácilmente.",
    exact: "
        La página debe mostrarse en 300 ms.
        Tras cinco fallos, la cuenta se bloquea.
        La exportación tiene como máximo 10 MB.
        La respuesta es 401.
        El informe se envía cada día a las 8.
        La contraseña tiene al menos 12 caracteres.
        La lista se ordena por nombre.
        Solo el dueño debe leer.",
    failing: "
        la contraseña es incorrecta
        falta el archivo
        la conexión falla
        el usuario no tiene permiso
        el campo está vacío
        el nombre está duplicado
        la sesión ha caducado
        el servidor rechaza la petición",
    happy: "
        el usuario escribe la contraseña
        el usuario entra
        se crea el pedido
        aparece la página de inicio
        se envía el mensaje
        la directora lee el informe
        el archivo se carga
        la lista se ordena",
};

// contract R5
#[test]
fn english_means_what_it_meant() {
    for (requirement, expected) in [
        ("The page MUST load fast.", &["Q003", "Q001"][..]),
        ("Users are happy.", &["Q002", "Q003"]),
        ("It MUST use the Vite dev server and rotate, sine and a plant.", &["Q003"]),
        ("The certificate MUST contain robustness figures.", &[]),
    ] {
        assert_eq!(codes(requirement, "x fails"), expected, "{requirement}");
    }
    for scenario in ["the video plays", "a supervisor opens it", "the plant grows", "keys rotate"] {
        assert!(codes("It MUST return 1.", scenario).contains(&"Q004"), "{scenario}");
    }
}

/// A heading at the wrong level or misspelled is pointed at, in every language.
#[test]
fn headings_that_were_meant_are_named() {
    let found = |overview: &str, criteria: &str| -> Vec<String> {
        let text = format!(
            "---\nid: a\n---\n\n# Specification: A\n\n{overview}\n\nA.\n\n## Requirements\n\n### R1: A\n\n\
             It MUST return 1.\n\n{criteria}\n\n### Scenario: No\n\n- **WHEN** no\n- **THEN** 1\n"
        );
        let doc = Doc::new(Source::Text(text.clone()), spec::parse);
        let report = check::main_spec(&SpecId::new("a").unwrap(), &doc, &Extras::default());
        let found = report.map(|report| report.diagnostics).unwrap_or_default();
        let missing = found.iter().filter(|d| d.rule.code == "S001");
        missing.map(|d| format!("{} at {}", d.message, d.span.of(&text))).collect()
    };
    assert_eq!(found("## Overview", "## Acceptance Criteria"), [""; 0]);
    for (heading, meant) in [
        ("## Overveiw", "Overview"),
        ("# Overview", "Overview"),
        ("### overview", "Overview"),
        ("### 概覽", "Overview"),
        ("# Überblick", "Overview"),
        ("## Resumen", "Overview"),
        ("## Summary", "Overview"),
    ] {
        let expected = format!(
            "the section `## {meant}` is missing; did you mean it by `{heading}`? at {heading}"
        );
        assert_eq!(found(heading, "## Acceptance Criteria"), [expected]);
    }
    let heading = "## Acceptance criterion";
    let expected = format!(
        "the section `## Acceptance Criteria` is missing; did you mean it by `{heading}`? at {heading}"
    );
    assert!(found("## Overview", heading).contains(&expected));
    let found = found("## Background", "## Acceptance Criteria");
    assert_eq!(found, ["the section `## Overview` is missing at # Specification: A"]);
}

/// The shape of the user's own specs: a prefix before the number, no frontmatter, tables and rules
/// in between, scenarios with GIVEN, WHEN and THEN.
const SEED: &str = "\
# Specification: High-Level Workflows

## Overview

This specification defines the workflows `plan` and `impl`.

**Key Design Principle**: Workflow commands only check `phase`.

## Terminology

| Term | Definition |
|------|------------|
| **workflow** | High-level orchestration |

## Requirements

### WF-R1: Phase-Only State Machine

All workflow commands MUST determine their action solely based on the `phase` field. Valid phases are:

| Phase | Description |
|-------|-------------|
| `proposed` | Proposal exists |

### WF-R2: Planning Verdict Updates

The `challenge` command MUST update `phase`:

- **APPROVED** → `challenged`

---

## Acceptance Criteria

### Scenario: WF-R1 - Plan with proposed phase

- **GIVEN** a change in phase `proposed`
- **WHEN** `plan` is executed
- **THEN** `challenge` is run, and an error is shown if it fails
";

// contract R5
#[test]
fn documents_with_the_shape_of_the_seeds_are_valid() {
    let doc = Doc::new(Source::Text(SEED.to_owned()), spec::parse);
    let ids: Vec<String> = doc.value().requirements.iter().map(|r| r.id.to_string()).collect();
    assert_eq!(ids, ["WF-R1", "WF-R2"]);
    assert_eq!(doc.value().requirements[0].title.as_str(), "Phase-Only State Machine");
    let report = check::main_spec(&SpecId::new("workflows").unwrap(), &doc, &Extras::default());
    let found: Vec<_> = report.iter().flat_map(|r| &r.diagnostics).map(|d| d.rule.code).collect();
    assert_eq!(found, ["F002"]);
}

/// The user's documents themselves, where they are.
#[test]
fn the_seeds_are_valid() {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let Some(dir) = above.map(|dir| dir.join("shared/seeds")).find(|dir| dir.is_dir()) else {
        println!("skipped: there is no shared/seeds above the repository");
        return;
    };
    let mut specs = 0;
    for file in fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        if !text.contains("\n## Requirements") {
            continue;
        }
        specs += 1;
        let doc = Doc::new(Source::Text(text), spec::parse);
        let id = doc.value().id.clone().unwrap_or_else(|| SpecId::new("seed").unwrap());
        let report = check::main_spec(&id, &doc, &Extras::default());
        let found = report.map(|report| report.diagnostics).unwrap_or_default();
        let high: Vec<_> = found.iter().filter(|d| d.severity() == Severity::High).collect();
        assert!(high.is_empty(), "{}: {high:?}", path.display());
    }
    assert!(specs >= 4, "{specs}");
}
